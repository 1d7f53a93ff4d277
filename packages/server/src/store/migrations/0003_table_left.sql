-- A dry router over a kernel that still holds an older table of its own: what is removed there may stay in force.
alter table router add column table_left boolean not null default false;
