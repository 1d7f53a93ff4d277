-- A later change that awaits confirmation too took this one's undoing over; rolled_back_at is set with it.
alter table confirmation add column superseded_by uuid;
