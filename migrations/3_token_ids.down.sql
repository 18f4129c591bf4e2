-- Takes ids from the column's default again, and codes from random().
--
-- Takes ACCESS EXCLUSIVE on tokens for an instant.

DROP TRIGGER before_token_insert ON tokens;
DROP FUNCTION trg_before_token_insert();
ALTER TABLE tokens ALTER COLUMN id SET DEFAULT nextval('tokens_id_seq');
ALTER TABLE tokens ALTER COLUMN code SET DEFAULT lpad(to_char(random() * 100000, 'FM00000'), 5, '0');
DROP FUNCTION mailroom_random_code();
