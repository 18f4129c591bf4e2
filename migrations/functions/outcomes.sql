-- What an application is told of: outcomes that mailroom outcomes hands over, and notifications of messages that want one.

-- Keeps the final outcomes that a statement has inserted, or that of a row that it has updated, if they are wanted, and notifies
-- for messages with the option notify. SECURITY DEFINER, as what follows: a consumer needs no right on the table, and can tell
-- nothing else. The settings keep the plan for any number of rows.
CREATE OR REPLACE FUNCTION trg_after_delivery_outcomes() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off
AS $$
DECLARE
    v_is_wanted boolean := (SELECT h.outcomes_since FROM mailroom_home h) IS NOT NULL;
BEGIN
    IF TG_OP = 'UPDATE' THEN
        IF v_is_wanted THEN
            INSERT INTO mailroom_outcomes (queue, token, state, address, code, reply)
            VALUES (NEW.queue, NEW.token, NEW.state, NEW.address, NEW.code, NEW.reply);
        END IF;
        PERFORM mailroom_notify_outcome(NEW.token);
        RETURN NULL;
    END IF;
    IF v_is_wanted THEN
        INSERT INTO mailroom_outcomes (queue, token, state, address, code, reply)
        SELECT c.queue, c.token, c.state, c.address, c.code, c.reply FROM changed c WHERE c.state <> 'deferred' ORDER BY c.token;
    END IF;
    PERFORM pg_notify('mailroom_outcome', m.id::text)
    FROM changed c JOIN tokens t ON t.id = c.token JOIN mailroom_messages m ON m.id = t.message
    WHERE c.state <> 'deferred' AND m.options @> '{"notify": true}';
    RETURN NULL;
END
$$;

-- The same for tokens that a claim has passed, since they had expired, and of which there is no other record. One statement
-- for all of them, and none that keeps outcomes while nobody wants them: a backlog of a million may have expired.
CREATE OR REPLACE FUNCTION trg_after_batch_expired() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off
AS $$
DECLARE
    v_actions token_action[] := (SELECT q.actions FROM mailroom_queues q WHERE q.name = NEW.queue);
    v_after bigint := coalesce(
        (SELECT b.cursor FROM mailroom_batches b WHERE b.queue = NEW.queue AND b.id < NEW.id ORDER BY b.id DESC LIMIT 1), 0);
    v_now bigint := floor(extract(epoch FROM clock_timestamp()));
BEGIN
    IF (SELECT h.outcomes_since FROM mailroom_home h) IS NOT NULL THEN
        INSERT INTO mailroom_outcomes (queue, token, state)
        SELECT NEW.queue, t.id, 'expired' FROM tokens t
        WHERE t.id > v_after AND t.id <= NEW.cursor AND mailroom_takes(v_actions, t.action) AND t.consumed_at IS NULL
          AND t.expires_at <= v_now ORDER BY t.id;
    END IF;
    PERFORM pg_notify('mailroom_outcome', m.id::text) FROM tokens t JOIN mailroom_messages m ON m.id = t.message
    WHERE t.id > v_after AND t.id <= NEW.cursor AND t.message IS NOT NULL AND mailroom_takes(v_actions, t.action)
      AND t.consumed_at IS NULL AND t.expires_at <= v_now AND m.options @> '{"notify": true}';
    RETURN NULL;
END
$$;

-- Notifies of an outcome of a token, if its message wants that.
CREATE OR REPLACE FUNCTION mailroom_notify_outcome(p_token bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('mailroom_outcome', m.id::text) FROM tokens t JOIN mailroom_messages m ON m.id = t.message
    WHERE t.id = p_token AND m.options @> '{"notify": true}';
END
$$;

-- Begins to keep outcomes, or, with p_wanted false, ends that and removes those that are kept. Returns how many these are.
CREATE OR REPLACE FUNCTION mailroom_want_outcomes(p_wanted boolean) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    v_count bigint;
BEGIN
    UPDATE mailroom_home SET outcomes_since = CASE WHEN p_wanted THEN coalesce(outcomes_since, clock_timestamp()) END
    WHERE (outcomes_since IS NOT NULL) <> p_wanted;
    IF NOT p_wanted THEN
        DELETE FROM mailroom_outcomes;
    END IF;
    GET DIAGNOSTICS v_count = ROW_COUNT;
    RETURN CASE WHEN p_wanted THEN (SELECT count(*) FROM mailroom_outcomes) ELSE v_count END;
END
$$;
