-- Mails of Supabase Auth.

-- Returns p_text as a value in the query of a URL (RFC 3986).
CREATE OR REPLACE FUNCTION mailroom_url_value(p_text text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN (SELECT coalesce(string_agg(CASE WHEN b.byte ~ '^[A-Za-z0-9_.~-]$' THEN b.byte ELSE '%' || upper(b.hex) END, '' ORDER BY b.place), '')
        FROM (SELECT i.place, substr(encode(convert_to(p_text, 'UTF8'), 'hex'), i.place * 2 - 1, 2) AS hex,
                     CASE WHEN get_byte(convert_to(p_text, 'UTF8'), i.place - 1) BETWEEN 33 AND 126
                          THEN chr(get_byte(convert_to(p_text, 'UTF8'), i.place - 1)) ELSE '' END AS byte
              FROM generate_series(1, octet_length(convert_to(p_text, 'UTF8'))) i (place)) b);

-- Asks for the mail of an event of Supabase Auth: it is a Send Email Hook, which runs in the transaction of the sign-up. The
-- template is supabase_ and the kind of the event. Returns {}, or the error that the hook reports for a kind that is not known.
--
-- A change of the address with a confirmation by both has token_hash_new, the hash for the present address, which has the code
-- in token; the new address has token_new and token_hash.
CREATE OR REPLACE FUNCTION mailroom_supabase_hook(event jsonb) RETURNS jsonb LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    v_user jsonb := event->'user';
    v_mail jsonb := event->'email_data';
    v_kind text := v_mail->>'email_action_type';
    v_is_notice boolean := v_kind LIKE '%\_notification';
    v_data jsonb;
    r record;
BEGIN
    IF v_kind IS NULL OR v_kind NOT IN (
        'signup', 'invite', 'magiclink', 'recovery', 'email', 'email_change', 'reauthentication', 'password_changed_notification',
        'email_changed_notification', 'phone_changed_notification', 'identity_linked_notification', 'identity_unlinked_notification',
        'mfa_factor_enrolled_notification', 'mfa_factor_unenrolled_notification') THEN
        RETURN jsonb_build_object('error', jsonb_build_object(
            'http_code', 500, 'message', format('mailroom has no mail for "%s"', coalesce(v_kind, ''))));
    END IF;
    v_data := jsonb_build_object(
        'site_url', coalesce(v_mail->>'site_url', ''), 'redirect_to', coalesce(v_mail->>'redirect_to', ''),
        'new_email', coalesce(v_user->>'new_email', ''), 'old_phone', coalesce(v_mail->>'old_phone', ''),
        'provider', coalesce(v_mail->>'provider', ''), 'factor_type', coalesce(v_mail->>'factor_type', ''),
        'old_email', coalesce(nullif(v_mail->>'old_email', ''), v_user->>'email', ''),
        'user', jsonb_build_object('id', v_user->'id', 'metadata', coalesce(v_user->'user_metadata', '{}')));
    FOR r IN
        SELECT m.recipient, m.otp, m.hash
        FROM (VALUES
            (v_user->>'email', v_mail->>'token', v_mail->>'token_hash', v_kind NOT IN ('email_change', 'email_changed_notification')),
            (v_user->>'email', v_mail->>'token', v_mail->>'token_hash_new', v_kind = 'email_change' AND v_mail->>'token_hash_new' <> ''),
            (v_user->>'new_email', coalesce(nullif(v_mail->>'token_new', ''), v_mail->>'token'), v_mail->>'token_hash', v_kind = 'email_change'),
            (coalesce(nullif(v_mail->>'old_email', ''), v_user->>'email'), NULL, NULL, v_kind = 'email_changed_notification'))
            m (recipient, otp, hash, is_meant)
        WHERE m.is_meant
    LOOP
        PERFORM mailroom_send(
            ARRAY[r.recipient], template => 'supabase_' || v_kind, locale => v_user->'user_metadata'->>'locale',
            data => v_data || CASE WHEN v_is_notice THEN '{}' ELSE jsonb_build_object('otp', coalesce(r.otp, ''), 'token_hash', coalesce(r.hash, ''), 'url',
                concat(rtrim(v_mail->>'site_url', '/'), '/verify?token=', r.hash, '&type=', v_kind,
                       CASE WHEN v_mail->>'redirect_to' <> '' THEN '&redirect_to=' || mailroom_url_value(v_mail->>'redirect_to') END)) END,
            reference => 'auth:' || (v_user->>'id'),
            -- A link or a code of Supabase Auth lives for an hour, unless it is configured otherwise.
            expires_at => CASE WHEN v_is_notice THEN NULL ELSE now() + interval '1 hour' END);
    END LOOP;
    RETURN '{}';
END
$$;
