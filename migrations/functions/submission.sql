-- Raw mails: finished by their programs, and stored as they are.

-- Returns why p_raw is no mail that SMTP can carry; null if it is one. A line that ends otherwise than in CRLF could end the mail,
-- or begin a command, for a server that is less strict than others. Looks for such lines in the beginning alone, where those of a
-- program that writes LF are: all of 100 kB would take as long as to store them. The sender looks through all of it, and rejects it.
CREATE OR REPLACE FUNCTION mailroom_raw_problem(p_raw bytea) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    v_size integer := octet_length(p_raw);
    v_begin text;
    v_rest text;
BEGIN
    IF v_size > 104857600 THEN
        RETURN 'a raw mail has more than 100 MiB';
    ELSIF position('\x00'::bytea IN p_raw) > 0 THEN
        RETURN 'a raw mail has a NUL';
    END IF;
    v_begin := encode(CASE WHEN v_size <= 16384 THEN p_raw ELSE substring(p_raw FOR 16384) END, 'escape');
    v_rest := replace(v_begin, E'\r\n', '');
    IF v_size > 16384 THEN
        v_rest := rtrim(v_rest, E'\r');
    END IF;
    IF strpos(v_rest, E'\n') > 0 OR strpos(v_rest, E'\r') > 0 THEN
        RETURN 'a raw mail has a line end other than CRLF';
    ELSIF v_begin !~* '^([\x21-\x39\x3b-\x7e]+[ \t]*:[^\n]*\n([ \t][^\n]*\n)*)*from[ \t]*:' THEN
        RETURN 'a raw mail has no header field From';
    END IF;
    RETURN NULL;
END
$$;

-- What the key of a raw mail stands for. Not its bytes: a program that tries again draws a new Date, Message-ID and boundary.
CREATE OR REPLACE FUNCTION mailroom_raw_fingerprint(p_action text, p_account bigint, p_recipients text[], p_return_path text,
    p_profile text, p_reference text, p_topic text) RETURNS bytea LANGUAGE sql STABLE PARALLEL SAFE
RETURN sha256(convert_to(jsonb_build_array('raw', p_action, p_account, p_recipients, p_return_path, p_profile, p_reference, p_topic)::text, 'UTF8'));

-- Asks for many raw mails by one statement: an element of each array is of one mail. Recipients are addresses with a line feed
-- between them. The arrays from p_keys on may be null, and so may be their elements; but of several mails each has a key of its own.
-- Returns a row for each mail. Of one whose key a message has already it asks for nothing: is_known, and the id of that message, or
-- an error if that one has another envelope, action, reference, profile or topic. The key of a message whose mail never left, and never will,
-- is free. So the same call may be made again when its answer was
-- lost, and waits for the first if that still runs. work_mem: the trigger sees all mails of a group, which would otherwise go through
-- a file.
CREATE OR REPLACE FUNCTION mailroom_submit(p_return_paths text[], p_recipients text[], p_raw bytea[], p_keys text[] DEFAULT NULL,
    p_references text[] DEFAULT NULL, p_profiles text[] DEFAULT NULL, p_actions text[] DEFAULT NULL, p_subjects text[] DEFAULT NULL,
    p_send_after timestamptz[] DEFAULT NULL, p_expires_at timestamptz[] DEFAULT NULL, p_options jsonb[] DEFAULT NULL, p_topics text[] DEFAULT NULL,
    OUT key text, OUT id bigint, OUT is_known boolean)
RETURNS SETOF record LANGUAGE plpgsql SECURITY DEFINER
SET plan_cache_mode = force_generic_plan SET work_mem = '32MB'
AS $$
#variable_conflict use_column
DECLARE
    v_count integer := coalesce(cardinality(p_raw), 0);
    v_made text[] := '{}';
    v_owner bigint := mailroom_true_owner();
    r record;
BEGIN
    IF v_count = 0 OR cardinality(p_recipients) <> v_count OR array_position(p_raw, NULL) IS NOT NULL THEN
        RAISE EXCEPTION 'p_raw and p_recipients are not of the same mails' USING ERRCODE = 'invalid_parameter_value',
            HINT = 'both have one element for each mail';
    ELSIF v_count > 1 AND (SELECT count(DISTINCT k) FROM unnest(p_keys) k) < v_count THEN
        RAISE EXCEPTION 'not each of several mails has a key of its own' USING ERRCODE = 'invalid_parameter_value',
            HINT = 'without a key each mail needs a call';
    ELSIF v_count = 1 THEN
        -- The usual group, which unnest() would take half as long again.
        INSERT INTO mailroom_messages AS m (owner, action, recipients, raw, return_path, subject, profile, send_after, expires_at,
                                            idempotency_key, reference, options, topic, fingerprint)
        VALUES (v_owner, coalesce(p_actions[1], 'message'), string_to_array(p_recipients[1], E'\n'), p_raw[1], p_return_paths[1], p_subjects[1],
                p_profiles[1], p_send_after[1], p_expires_at[1], p_keys[1], p_references[1], p_options[1], p_topics[1],
                CASE WHEN p_keys[1] IS NOT NULL THEN mailroom_raw_fingerprint(
                    coalesce(p_actions[1], 'message'), NULL, string_to_array(p_recipients[1], E'\n'), p_return_paths[1], p_profiles[1],
                    p_references[1], p_topics[1]) END)
        ON CONFLICT (owner, idempotency_key) WHERE idempotency_key IS NOT NULL AND replaced_at IS NULL DO NOTHING
        RETURNING m.idempotency_key, m.id, false INTO key, id, is_known;
        IF FOUND THEN
            RETURN NEXT;
            RETURN;
        END IF;
    ELSE
        FOR key, id, is_known IN
            INSERT INTO mailroom_messages AS m (owner, action, recipients, raw, return_path, subject, profile, send_after, expires_at,
                                                idempotency_key, reference, options, topic, fingerprint)
            SELECT v_owner, coalesce(g.action, 'message'), string_to_array(g.recipients, E'\n'), g.raw, g.return_path, g.subject, g.profile,
                   g.send_after, g.expires_at, g.key, g.reference, g.options, g.topic,
                   mailroom_raw_fingerprint(coalesce(g.action, 'message'), NULL, string_to_array(g.recipients, E'\n'), g.return_path,
                                            g.profile, g.reference, g.topic)
            FROM unnest(p_return_paths, p_recipients, p_raw, p_keys, p_references, p_profiles, p_actions, p_subjects, p_send_after,
                        p_expires_at, p_options, p_topics)
                 g (return_path, recipients, raw, key, reference, profile, action, subject, send_after, expires_at, options, topic)
            WHERE g.raw IS NOT NULL
            ON CONFLICT (owner, idempotency_key) WHERE idempotency_key IS NOT NULL AND replaced_at IS NULL DO NOTHING
            RETURNING m.idempotency_key, m.id, false
        LOOP
            v_made := v_made || key;
            RETURN NEXT;
        END LOOP;
    END IF;
    -- A statement of its own: it sees what the first one waited for.
    FOR r IN
        SELECT k.key, k.place, m.id, m.fingerprint IS NOT DISTINCT FROM mailroom_raw_fingerprint(
                   coalesce(k.action, 'message'), NULL, string_to_array(k.recipients, E'\n'), k.return_path, k.profile, k.reference,
                   k.topic) AS is_same,
               mailroom_has_died(m) AS is_dead
        FROM unnest(p_return_paths, p_recipients, p_keys, p_references, p_profiles, p_actions, p_topics) WITH ORDINALITY
             k (return_path, recipients, key, reference, profile, action, topic, place)
        LEFT JOIN mailroom_messages m ON m.owner = v_owner AND m.idempotency_key = k.key AND m.replaced_at IS NULL
        WHERE k.key <> ALL (v_made)
    LOOP
        IF r.id IS NULL AND r.key IS NULL THEN
            PERFORM mailroom_refuse_dropped();
        ELSIF r.id IS NULL THEN
            RAISE EXCEPTION 'the message with the idempotency_key "%" was replaced meanwhile', r.key
                USING ERRCODE = 'serialization_failure', HINT = 'ask again';
        ELSIF r.is_dead THEN
            UPDATE mailroom_messages m SET replaced_at = clock_timestamp() WHERE m.id = r.id AND m.replaced_at IS NULL;
            RETURN QUERY SELECT * FROM mailroom_submit(ARRAY[p_return_paths[r.place]], ARRAY[p_recipients[r.place]], ARRAY[p_raw[r.place]],
                ARRAY[r.key], ARRAY[p_references[r.place]], ARRAY[p_profiles[r.place]], ARRAY[p_actions[r.place]],
                ARRAY[p_subjects[r.place]], ARRAY[p_send_after[r.place]], ARRAY[p_expires_at[r.place]], ARRAY[p_options[r.place]],
                ARRAY[p_topics[r.place]]);
            CONTINUE;
        ELSIF NOT r.is_same THEN
            RAISE EXCEPTION 'another message has the idempotency_key "%"', r.key USING ERRCODE = 'unique_violation',
                HINT = 'use another key';
        END IF;
        key := r.key; id := r.id; is_known := true;
        RETURN NEXT;
    END LOOP;
END
$$;
