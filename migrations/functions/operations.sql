-- The record of operations.

-- Records an operation, with the actor and the reason that the transaction has set.
CREATE OR REPLACE FUNCTION mailroom_record_operation(p_kind text, p_queue text, p_details jsonb) RETURNS void
LANGUAGE sql AS $$
    INSERT INTO mailroom_operations (kind, queue, details, actor, reason)
    VALUES (p_kind, p_queue, p_details,
            coalesce(nullif(current_setting('mailroom.actor', true), ''),
                     nullif(current_setting('application_name'), ''), session_user),
            nullif(current_setting('mailroom.reason', true), ''))
$$;

-- True if a change of a message of p_owner is recorded: by another than its owner, or with a reason. What applications do with
-- their own is no operation.
CREATE OR REPLACE FUNCTION mailroom_is_for_history(p_owner bigint) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    RETURN nullif(current_setting('mailroom.reason', true), '') IS NOT NULL OR p_owner IS DISTINCT FROM mailroom_true_owner();
END
$$;

-- Records what a consumer notes of itself: that it read its settings again ('reload'), or that the database went back to an
-- older state ('went back'). SECURITY DEFINER, so that a consumer needs no right on the record, and can state nothing that an
-- operator did.
CREATE OR REPLACE FUNCTION mailroom_record_event(p_kind text, p_queue text, p_details jsonb) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    IF p_kind IS NULL OR p_kind NOT IN ('reload', 'went back') THEN
        RAISE EXCEPTION 'a consumer does not record "%"', p_kind USING ERRCODE = 'invalid_parameter_value',
            HINT = 'kinds: reload, went back';
    END IF;
    PERFORM mailroom_record_operation(p_kind, p_queue, coalesce(p_details, '{}'));
END
$$;

-- Returns the ids that an operation replayed, revoked or moved the cursor over; none for a row that was inserted by hand with
-- other details than mailroom records.
CREATE OR REPLACE FUNCTION mailroom_operation_ids(p_kind text, p_details jsonb) RETURNS int8multirange LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    IF p_kind IN ('replay', 'revoke') THEN
        RETURN coalesce((p_details->>'ids')::int8multirange, '{}');
    ELSIF p_kind = 'rewind' AND p_details ? 'cursor_before' AND p_details ? 'cursor_after' THEN
        RETURN int8multirange(int8range(
            least((p_details->>'cursor_before')::bigint, (p_details->>'cursor_after')::bigint),
            greatest((p_details->>'cursor_before')::bigint, (p_details->>'cursor_after')::bigint), '(]'));
    END IF;
    RETURN '{}';
EXCEPTION WHEN data_exception THEN
    RETURN '{}';
END
$$;
