-- While a request is still waited for (`Prefer: wait`), what is kept of it is its answer from before the wait: until then
-- the final one may come. Null: it is the final one.
alter table idempotency add column final_by timestamptz;
