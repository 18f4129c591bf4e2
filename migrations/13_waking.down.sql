-- Makes every insert notify again. Replaces the body of a function; locks nothing.

DROP FUNCTION mailroom_start_listening(text);
DROP FUNCTION mailroom_open_inserts(text[]);
DROP FUNCTION mailroom_stay_polling();

CREATE OR REPLACE FUNCTION trg_after_token_inserted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NOTIFY token_insert;
    RETURN NULL;
END
$$;

DO $$
BEGIN
    EXECUTE format('ALTER FUNCTION trg_after_token_inserted() SET search_path = %I, pg_temp', current_schema());
END
$$;
