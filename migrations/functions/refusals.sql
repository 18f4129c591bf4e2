-- What a message cannot be: that its sender, which knows all of it, would not mail. core/mail and core/templates refuse the same, where
-- a message comes another way, and the test of both is one table (message_refusals_test).

-- True if an address of the right form keeps the rules of RFC 5321 for lengths and domains, and has no character in it that cannot be
-- seen.
CREATE OR REPLACE FUNCTION mailroom_is_address(p_address text) RETURNS boolean LANGUAGE plpgsql STABLE PARALLEL SAFE AS $$
DECLARE
    v_domain text := substring(p_address FROM '@([^@]*)$');
    v_local text := left(p_address, -length(v_domain) - 1);
BEGIN
    IF v_domain ~ '[^\x01-\x7f]' THEN
        v_domain := mailroom_ascii_domain(v_domain);
    END IF;
    IF v_local ~ '^\.|\.\.|\.$' AND v_local !~ '^"' THEN
        v_local := '"' || v_local || '"';
    END IF;
    RETURN octet_length(v_local) <= 64 AND octet_length(v_local) + octet_length(v_domain) < 254 AND v_local !~ '^"?-'
       AND v_domain ~ '^(?:[A-Za-z0-9]+(?:-+[A-Za-z0-9]+)*\.)+[A-Za-z0-9]+(?:-+[A-Za-z0-9]+)*$' AND v_domain !~ '[^.]{64}|\.[0-9]+$'
       AND NOT (getdatabaseencoding() = 'UTF8' AND v_local ~ ('[\u0080-\u00a0\u061c\u1680\u2000-\u200f\u2028-\u202f\u205f-\u206f'
                                                             '\u3000\ufeff\ufff9-\ufffb]'));
END
$$;

-- The same as mailroom_are_mailboxes(), for what that does not know at sight.
CREATE OR REPLACE FUNCTION mailroom_are_any_mailboxes(p_mailboxes text[]) RETURNS boolean LANGUAGE plpgsql STABLE PARALLEL SAFE AS $$
DECLARE
    v_mailbox text;
BEGIN
    IF (array_to_string(p_mailboxes, E'\x01', '') || E'\x01' ~
        '^(?:(?:(?:[^<>",;\x01]*|[^<>"@\x01]*|"(?:[^"\\\x01]|\\[^\x01])*" *)<(?:[^\s"(),:;<>@[\\\]\x01]+|"(?:[^"\\<>\x01]|\\[^<>\x01])+")@[^\s"(),:;<>@[\\\]\x01]+\.[^\s"(),:;<>@[\\\]\x01]+>|(?:[^\s"(),:;<>@[\\\]\x01]+|"(?:[^"\\<>\x01]|\\[^<>\x01])+")@[^\s"(),:;<>@[\\\]\x01]+\.[^\s"(),:;<>@[\\\]\x01]+)\x01)+$') IS NOT TRUE THEN
        RETURN false;
    END IF;
    FOREACH v_mailbox IN ARRAY p_mailboxes LOOP
        IF NOT mailroom_is_address(mailroom_address(v_mailbox)) THEN
            RETURN false;
        END IF;
    END LOOP;
    RETURN true;
END
$$;

-- True if each element is one mailbox: local@domain, <local@domain>, Name <local@domain> or "Name" <local@domain>. False for an empty
-- array, and for null elements. The first expression knows most addresses, and takes a fifth of the time. Inlined.
CREATE OR REPLACE FUNCTION mailroom_are_mailboxes(p_mailboxes text[]) RETURNS boolean LANGUAGE sql STABLE PARALLEL SAFE
RETURN array_to_string(p_mailboxes, E'\x01', '') || E'\x01' ~ '^(?:[a-z0-9._+][a-z0-9._+-]*@(?:[a-z0-9]+(?:-+[a-z0-9]+)*\.)+[a-z]+\x01)+$'
    AND (octet_length(array_to_string(p_mailboxes, E'\x01', '')) <= 64 OR array_to_string(p_mailboxes, E'\x01', '') !~ '[^\x01]{65}')
    OR mailroom_are_any_mailboxes(p_mailboxes);

CREATE OR REPLACE FUNCTION mailroom_is_mailbox(p_mailbox text) RETURNS boolean LANGUAGE sql STABLE PARALLEL SAFE
RETURN CASE WHEN p_mailbox IS NOT NULL THEN mailroom_are_mailboxes(ARRAY[p_mailbox]) END;

-- Returns the mailboxes of a list with commas between them. A comma without an address before it belongs to a name.
-- core/mail/address.cpp does the same.
CREATE OR REPLACE FUNCTION mailroom_mailboxes_of(p_list text) RETURNS text[] LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
    c_first constant text := '^(?:[^"@]|"(?:[^"\\]|\\.)*")*@(?:[^",]|"(?:[^"\\]|\\.)*")*';
    v_rest text := p_list;
    v_size integer;
    v_all text[];
BEGIN
    WHILE v_rest IS NOT NULL LOOP
        v_size := length(substring(v_rest FROM c_first));
        IF v_size IS NULL OR substr(v_rest, v_size + 1, 1) NOT IN ('', ',') THEN
            v_size := length(v_rest);
        END IF;
        v_all := v_all || btrim(left(v_rest, v_size), ' ');
        v_rest := CASE WHEN v_size < length(v_rest) THEN substr(v_rest, v_size + 2) END;
    END LOOP;
    RETURN v_all;
END
$$;

-- Returns the mailbox of an address with a name, whatever is in that: quoted, in one line, and cut where it is very long.
CREATE OR REPLACE FUNCTION mailroom_mailbox(name text, address text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN (SELECT CASE WHEN coalesce(n.line, '') = '' THEN address
                    ELSE '"' || regexp_replace(n.line, '(["\\])', '\\\1', 'g') || '" <' || address || '>' END
        FROM (SELECT left(btrim(regexp_replace(name, '[\x01-\x20\x7f]+', ' ', 'g')), 180) AS line) n);

-- Returns what a template cannot show of the data of a message to p_mailboxes; null for nothing: the limits are those of
-- core/templates/template_data.hpp. Depth and numbers are looked at only in data that could exceed them.
CREATE OR REPLACE FUNCTION mailroom_data_problem(p_data jsonb, p_mailboxes text[], p_action text, p_path text) RETURNS text
LANGUAGE plpgsql STABLE PARALLEL SAFE AS $$
DECLARE
    v_text text := p_data::text;
    v_size integer := octet_length(v_text);
BEGIN
    IF v_size > 1048576 THEN
        RETURN format('data has %s octets, at most 1048576 are allowed', v_size);
    ELSIF v_size > 128 AND v_size - octet_length(translate(v_text, '[{', '')) > 64
          AND jsonb_path_exists(p_data, 'strict $.**{64} ? (@.type() == "object" || @.type() == "array")') THEN
        RETURN 'data is nested more than 64 deep';
    ELSIF v_size > 200000 AND (SELECT count(*) FROM jsonb_path_query(p_data, 'strict $.**')) > 100000 THEN
        RETURN 'data has more than 100000 values';
    ELSIF v_size > 308 AND v_text ~ '[0-9]{200}[0-9]{109}' AND jsonb_path_exists(
              p_data, 'strict $.** ? (@.type() == "number" && (@ >= 1.797693134862315808e308 || @ <= -1.797693134862315808e308))') THEN
        RETURN 'data has a number that is too large';
    END IF;
    IF p_data ?| '{action,email}' THEN
        IF p_data ? 'action' AND p_data->'action' <> to_jsonb(p_action) THEN
            RETURN 'data has action, which mailroom sets itself';
        ELSIF p_data ? 'email' AND EXISTS (SELECT FROM unnest(p_mailboxes) u WHERE to_jsonb(mailroom_address(u)) <> p_data->'email') THEN
            RETURN 'data has email, which mailroom sets itself';
        END IF;
    END IF;
    IF p_path IS NOT NULL AND p_data ?| '{code,expires_at,expires_in,link,token}' THEN
        RETURN 'data has code, expires_at, expires_in, link or token, which mailroom sets itself';
    END IF;
    RETURN NULL;
END
$$;

-- Raises an error unless p_id is a Message-ID that an application may give: none of mailroom's, of the domain of p_sender. If that is
-- null, the sender of the mail knows the domain, and refuses another one.
CREATE OR REPLACE FUNCTION mailroom_check_message_id(p_id text, p_sender text) RETURNS void LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    v_domain text := substring(mailroom_canonical(mailroom_address(p_sender)) FROM '@([^@]*)$');
BEGIN
    IF octet_length(p_id) > 250 OR p_id !~ '^<[A-Za-z0-9!#$%&''*+/=?^_`{|}~-]+(\.[A-Za-z0-9!#$%&''*+/=?^_`{|}~-]+)*@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+>$' THEN
        RAISE EXCEPTION 'the header "Message-ID" is not such as <order.17@app.example>' USING ERRCODE = 'check_violation',
            HINT = 'it has at most 250 octets of ASCII';
    ELSIF p_id ~* '\.mailroom@' THEN
        RAISE EXCEPTION 'the Message-ID "%" is of the form that mailroom makes', p_id USING ERRCODE = 'check_violation',
            HINT = 'do not end what is before the @ with .mailroom';
    ELSIF lower(substring(p_id FROM '@(.*)>$')) <> v_domain THEN
        RAISE EXCEPTION 'the Message-ID "%" is not of the domain of the sender, %', p_id, v_domain USING ERRCODE = 'check_violation',
            HINT = format('write it as <order.17@%s>', v_domain);
    END IF;
END
$$;

-- Raises an error unless p_headers is an object of texts and numbers under names that mailroom does not write itself; returns it with
-- the digits of its numbers.
CREATE OR REPLACE FUNCTION mailroom_checked_headers(p_headers jsonb, p_sender text) RETURNS jsonb LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    v_name text;
    v_value jsonb;
    v_text text;
BEGIN
    IF jsonb_typeof(p_headers) <> 'object' THEN
        RAISE EXCEPTION 'headers is not an object' USING ERRCODE = 'check_violation',
            HINT = 'write it as {"List-Unsubscribe": "<https://example.org/u/17>"}';
    ELSIF octet_length(p_headers::text) > 32768 THEN
        RAISE EXCEPTION 'headers have more than 32768 octets' USING ERRCODE = 'check_violation';
    END IF;
    IF (SELECT count(*) > 100 FROM jsonb_object_keys(p_headers)) THEN
        RAISE EXCEPTION 'a message has more than 100 headers' USING ERRCODE = 'check_violation';
    ELSIF (SELECT count(*) > count(DISTINCT lower(k)) FROM jsonb_object_keys(p_headers) k) THEN
        RAISE EXCEPTION 'a header is given twice' USING ERRCODE = 'check_violation', HINT = 'upper and lower case are the same';
    END IF;
    FOR v_name, v_value IN SELECT * FROM jsonb_each(p_headers) LOOP
        IF v_name !~ '^[A-Za-z0-9-]{1,64}$' THEN
            RAISE EXCEPTION 'a header has a name that is not 1 to 64 letters, digits and hyphens' USING ERRCODE = 'check_violation';
        ELSIF lower(v_name) ~ ('^(date|from|sender|reply-to|to|cc|bcc|subject|mime-version|auto-submitted|return-path'
                               '|received|delivered-to|dkim-signature|content-.*|resent-.*|x-mailroom-recipient)$') THEN
            RAISE EXCEPTION 'the header "%" is written by mailroom', v_name USING ERRCODE = 'check_violation',
                HINT = 'sender, reply_to, recipients, cc, bcc, subject and attachments are columns of their own';
        END IF;
        v_text := v_value #>> '{}';
        IF jsonb_typeof(v_value) NOT IN ('string', 'number') OR btrim(v_text, ' ') = '' OR v_text ~ '[\x01-\x1f\x7f]' THEN
            RAISE EXCEPTION 'the header "%" is not a printable text', v_name USING ERRCODE = 'check_violation';
        ELSIF v_text ~ '[^\x01-\x7f]' THEN
            IF lower(v_name) ~ '^(references|message-id|.*-to|list-.*)$' THEN
                RAISE EXCEPTION 'the header "%" is not a text of printable ASCII', v_name USING ERRCODE = 'check_violation',
                    HINT = 'what is in it are addresses, ids or URLs: write a domain as xn--..., and in a URL %C3%BC';
            END IF;
        ELSIF octet_length(v_text) > 900
              AND (SELECT bool_or(octet_length(w[1]) > 900) FROM regexp_matches(btrim(v_text, ' '), '( *[^ ]+)', 'g') w) THEN
            RAISE EXCEPTION 'the header "%" has more than 900 characters in a row that cannot be folded', v_name USING ERRCODE = 'check_violation';
        ELSIF lower(v_name) = 'message-id' THEN
            PERFORM mailroom_check_message_id(v_text, p_sender);
        END IF;
    END LOOP;
    RETURN CASE WHEN jsonb_path_exists(p_headers, '$.* ? (@.type() == "number")')
                THEN (SELECT jsonb_object_agg(h.key, h.value) FROM jsonb_each_text(p_headers) h) ELSE p_headers END;
END
$$;

-- Raises the error for a message that cannot be a mail. p_problem is that of trg_after_message_insert(),
-- p_row says which of several rows it is; null for one.
CREATE OR REPLACE FUNCTION mailroom_refuse(p_problem text, m mailroom_messages, p_row text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    v_text text;
    v_hint text;
    v_state text := 'check_violation';
BEGIN
    CASE p_problem
        WHEN 'unknown' THEN
            v_text := format('there is no action "%s"', m.action);
            v_hint := CASE WHEN m.action IN ('message', 'activation', 'password_recovery')
                           THEN 'the table of actions lacks it, which every database has: run mailroom migrate'
                           ELSE 'the owner of the tables creates it with mailroom_create_action()' END;
            v_state := 'foreign_key_violation';
        WHEN 'built-in' THEN
            v_text := format('a token of the action "%s" is not made by a message', m.action);
            v_hint := 'insert a row of accounts, or of tokens: docs/redeeming.md';
        WHEN 'retired' THEN
            v_text := format('the action "%s" is retired', m.action);
            v_hint := 'use another action';
        WHEN 'reserved' THEN
            v_text := format('role "%s" may not send messages of the action "%s"', m.enqueued_by, m.action);
            v_hint := (SELECT format('GRANT %I TO %I', a.producer, m.enqueued_by) FROM mailroom_actions a WHERE a.action = m.action);
            v_state := 'insufficient_privilege';
        WHEN 'no-topic' THEN
            v_text := format('there is no topic "%s"', left(m.topic, 100));
            v_hint := 'mailroom_create_topic() creates it';
            v_state := 'foreign_key_violation';
        WHEN 'retired-topic' THEN
            v_text := format('the topic "%s" is retired', m.topic);
            v_hint := 'use another topic, or none';
        WHEN 'accountless' THEN
            v_text := format('a message of the action "%s" needs an account', m.action);
            v_hint := 'account is the id of a row of accounts';
        WHEN 'no-account' THEN
            v_text := format('there is no account %s', m.account);
            v_hint := 'account is the id of a row of accounts';
            v_state := 'foreign_key_violation';
        WHEN 'misdirected' THEN
            v_text := format('a message of the action "%s" goes to the address of its account', m.action);
            v_hint := 'leave recipients, cc and bcc null';
        WHEN 'no-recipient' THEN
            v_text := 'a message needs a recipient';
            v_hint := 'recipients is an array of mailboxes: ARRAY[''ada@example.org'']';
        WHEN 'too-many' THEN
            v_text := format('a message has %s recipients, at most %s are allowed', cardinality(m.recipients || m.cc || m.bcc),
                             CASE WHEN m.raw IS NULL THEN '100' ELSE '1000' END);
            v_hint := 'send several messages';
        WHEN 'mailbox' THEN
            SELECT format(CASE b.place WHEN 2001 THEN 'the sender "%s" is not a mailbox' WHEN 2002 THEN 'the reply_to "%s" is not a mailbox'
                          WHEN 2003 THEN 'the return_path "%s" is not an address' ELSE '"%s" is not a mailbox' END, left(b.mailbox, 100))
            INTO v_text
            FROM (SELECT * FROM unnest(m.recipients || m.cc || m.bcc) WITH ORDINALITY
                  UNION ALL SELECT u.mailbox, 2002 FROM unnest(mailroom_mailboxes_of(m.reply_to)) u (mailbox)
                  UNION ALL VALUES (m.sender, 2001), (nullif(m.return_path, ''), 2003)) b (mailbox, place)
            WHERE mailroom_is_mailbox(coalesce(b.mailbox, CASE WHEN b.place <= 2000 THEN '' END)) IS FALSE ORDER BY b.place LIMIT 1;
            v_hint := 'one mailbox is written as ada@example.org or Ada <ada@example.org>';
        WHEN 'control' THEN
            v_text := 'a message has a control character outside of text and html';
            v_hint := 'remove it: it could add a header';
        WHEN 'long' THEN
            v_text := 'a message has a mailbox, key, reference, subject or other name that is too long';
            v_hint := 'a subject has at most 8192 octets, the others 1024';
        WHEN 'time' THEN
            v_text := 'a message could never be sent: expires_at is over or not after send_after, or send_after is infinite';
            v_hint := 'expires_at may be infinity; a time without a zone is in that of the session, ' || current_setting('TimeZone');
        WHEN 'template' THEN
            v_text := format('"%s" is not a name of a template', left(m.template, 100));
            v_hint := 'it has 1 to 100 letters, digits, - and _';
        WHEN 'data' THEN
            v_text := 'data is not an object';
            v_hint := 'write it as {"name": "Ada"}';
        WHEN 'data-limit' THEN
            v_text := mailroom_data_problem(m.data, m.recipients || m.cc || m.bcc, m.action,
                                            (SELECT a.path FROM mailroom_actions a WHERE a.action = m.action));
            v_hint := 'set what the template shows, each under a name of its own';
        WHEN 'data-topic' THEN
            v_text := 'data has unsubscribe_link or preferences_link, which mailroom sets itself in a mail with a topic';
            v_hint := 'set what the template shows, each under a name of its own';
        WHEN 'empty' THEN
            v_text := 'a message has no content';
            v_hint := 'set template, or subject with text or html';
        WHEN 'both' THEN
            v_text := 'a message has content of its own, and a template or data';
            v_hint := 'set template and data, with a subject if you like, or subject with text or html';
        WHEN 'return-path' THEN
            v_text := CASE WHEN m.raw IS NULL THEN 'a message has a return_path, and no raw mail'
                           ELSE format('the return_path "%s" is not an address', left(m.return_path, 100)) END;
            v_hint := 'it is the envelope sender of a raw mail, written as ada@example.org; empty for none';
        WHEN 'raw-both' THEN
            v_text := 'a raw mail has other content, headers or mailboxes beside it';
            v_hint := 'beside raw set recipients and return_path, which are its envelope; subject is for lists';
        WHEN 'raw' THEN
            v_text := mailroom_raw_problem(m.raw);
            v_hint := 'raw is header, empty line and body, as SMTP carries it: docs/messages.md';
        WHEN 'no-link' THEN
            v_text := format('a message of the action "%s" has a link, for which its own content has no place', m.action);
            v_hint := 'set template and data';
        WHEN 'no-subject' THEN
            v_text := 'a message has no subject';
            v_hint := 'set subject with text or html';
        WHEN 'no-body' THEN
            v_text := 'a message has no text';
            v_hint := 'set text or html';
        WHEN 'large' THEN
            v_text := 'text and html have more than 25 MiB';
            v_hint := 'mail a link to the content';
    END CASE;
    IF p_row IS NOT NULL THEN
        RAISE EXCEPTION '%', v_text USING ERRCODE = v_state, HINT = v_hint, DETAIL = p_row;
    END IF;
    RAISE EXCEPTION '%', v_text USING ERRCODE = v_state, HINT = v_hint;
END
$$;
