-- Events as clients are told of them, and the webhooks that carry them.
select 1;
