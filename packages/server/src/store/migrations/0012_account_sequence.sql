-- The order of accounts' creation, for lists and their pages: two can be created in the same millisecond.
alter table account add column sequence bigint not null default nextval('change_position');
alter table account add constraint account_sequence unique (sequence);
create index account_of_provider_sequence on account (provider_uuid, sequence) where role = 'user';
drop index account_of_provider;

-- Accounts that are to go as soon as nothing refers to them (../../sweep/removed-accounts.ts).
create index account_deleting on account (deletion_marked_at) where deletion_marked_at is not null;
