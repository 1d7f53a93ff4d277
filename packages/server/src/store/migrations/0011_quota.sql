-- How many objects of each kind an account may hold.
select 1;
