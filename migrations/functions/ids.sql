-- Ids of messages that applications keep: uuids that nobody can guess, made of the number and the time of the row, so that they take
-- neither a column nor an index. 58 bits of each are a seal, and the other 64 the number under a mask that depends on it.

-- Returns the HMAC of RFC 2104 by SHA-256 for a key of at most 64 octets.
CREATE OR REPLACE FUNCTION mailroom_hmac(p_key bytea, p_text bytea) RETURNS bytea LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN sha256(substring(bit_send(('x' || encode(p_key, 'hex'))::bit(512) # ('x' || repeat('5c', 64))::bit(512)) FROM 5)
              || sha256(substring(bit_send(('x' || encode(p_key, 'hex'))::bit(512) # ('x' || repeat('36', 64))::bit(512)) FROM 5) || p_text));

-- Returns the first 64 bits of an HMAC. Inlined.
CREATE OR REPLACE FUNCTION mailroom_hmac_bits(p_key bytea, p_text bytea) RETURNS bit LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN ('x' || left(encode(mailroom_hmac(p_key, p_text), 'hex'), 16))::bit(64);

-- Returns the 58 bits that seal a number and its time. p_kind: 1 message, 2 attachment, 3 outcome.
CREATE OR REPLACE FUNCTION mailroom_id_seal(p_secret bytea, p_kind integer, p_id bigint, p_at timestamptz) RETURNS bit
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN substring(mailroom_hmac_bits(
    mailroom_hmac(p_secret, 'mailroom id mac'),
    set_byte('\x00', 0, p_kind) || int8send(p_id) || int8send((extract(epoch FROM p_at) * 1000000)::bigint)) FROM 1 FOR 58);

-- Returns the number under the mask that a seal makes; the same takes the mask off.
CREATE OR REPLACE FUNCTION mailroom_id_masked(p_secret bytea, p_kind integer, p_seal bit, p_number bit) RETURNS bit
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN mailroom_hmac_bits(mailroom_hmac(p_secret, 'mailroom id mask'),
                          set_byte('\x00', 0, p_kind) || substring(bit_send((B'000000' || p_seal)::bit(64)) FROM 5)) # p_number;

-- Returns the uuid (version 4 of RFC 9562, whose 122 bits are seal and number) of a row.
CREATE OR REPLACE FUNCTION mailroom_uuid(p_secret bytea, p_kind integer, p_id bigint, p_at timestamptz) RETURNS uuid
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
    RETURN mailroom_uuid_by(mailroom_id_blocks(p_secret), p_kind, p_id, p_at);
END
$$;

-- Returns the keys of mac and mask as the blocks that an HMAC begins with, the inner and the outer one of each: many ids pay for them once.
CREATE OR REPLACE FUNCTION mailroom_id_blocks(p_secret bytea) RETURNS bytea[] LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
    v_blocks bytea[] := '{}';
    v_key bit(512);
    v_name text;
BEGIN
    FOREACH v_name IN ARRAY ARRAY['mailroom id mac', 'mailroom id mask'] LOOP
        v_key := ('x' || encode(mailroom_hmac(p_secret, convert_to(v_name, 'UTF8')), 'hex'))::bit(512);
        v_blocks := v_blocks || substring(bit_send(v_key # ('x' || repeat('36', 64))::bit(512)) FROM 5)
                             || substring(bit_send(v_key # ('x' || repeat('5c', 64))::bit(512)) FROM 5);
    END LOOP;
    RETURN v_blocks;
END
$$;

-- Returns the same as mailroom_uuid(), by those blocks.
CREATE OR REPLACE FUNCTION mailroom_uuid_by(p_blocks bytea[], p_kind integer, p_id bigint, p_at timestamptz) RETURNS uuid
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
    v_kind bytea := set_byte('\x00', 0, p_kind);
    v_seal bit(58) := ('x' || left(encode(sha256(p_blocks[2] || sha256(p_blocks[1] || v_kind || int8send(p_id)
                                                                     || int8send((extract(epoch FROM p_at) * 1000000)::bigint))), 'hex'), 15))::bit(58);
    v_bits bit varying := v_seal || (('x' || left(encode(sha256(p_blocks[4] || sha256(
        p_blocks[3] || v_kind || substring(bit_send((B'000000' || v_seal)::bit(64)) FROM 5))), 'hex'), 16))::bit(64) # p_id::bit(64));
BEGIN
    RETURN encode(substring(bit_send((substring(v_bits FROM 1 FOR 48) || B'0100' || substring(v_bits FROM 49 FOR 12) || B'10'
                                      || substring(v_bits FROM 61 FOR 62))::bit(128)) FROM 5), 'hex')::uuid;
END
$$;

-- Returns the number in a uuid, and its seal; nulls if it is not of version 4. Whoever has the row looks whether the seal is its own.
CREATE OR REPLACE FUNCTION mailroom_opened_uuid(p_secret bytea, p_kind integer, p_uuid uuid, OUT id bigint, OUT seal bit)
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
    v_bits bit(128) := ('x' || encode(uuid_send(p_uuid), 'hex'))::bit(128);
BEGIN
    IF substring(v_bits FROM 49 FOR 4) = B'0100' AND substring(v_bits FROM 65 FOR 2) = B'10' THEN
        seal := substring(v_bits FROM 1 FOR 48) || substring(v_bits FROM 53 FOR 10);
        id := mailroom_id_masked(p_secret, p_kind, seal, substring(v_bits FROM 63 FOR 2) || substring(v_bits FROM 67 FOR 62))::bit(64)::bigint;
    END IF;
END
$$;

-- Returns the id by which HTTP names a message; null for none, and for one of a role that the caller is no member of. Volatile, so that
-- the statement after that which has stored it finds it.
CREATE OR REPLACE FUNCTION mailroom_email_id(id bigint) RETURNS uuid LANGUAGE plpgsql SECURITY DEFINER AS $$
#variable_conflict use_column
DECLARE
    v_message record;
BEGIN
    SELECT m.created_at, m.owner INTO v_message FROM mailroom_messages m WHERE m.id = mailroom_email_id.id;
    IF NOT FOUND OR NOT mailroom_is_own(v_message.owner, 'SELECT') THEN
        RETURN NULL;
    END IF;
    RETURN mailroom_uuid((SELECT s.secret FROM mailroom_id_secret s), 1, mailroom_email_id.id, v_message.created_at);
END
$$;

-- Returns the message that HTTP names so; null for none, and for one of a role that the caller is no member of. Does as much for a
-- guess as for the id of another's message.
CREATE OR REPLACE FUNCTION mailroom_message_of(email_id uuid) RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    v_secret bytea := (SELECT s.secret FROM mailroom_id_secret s);
    v_opened record := mailroom_opened_uuid(v_secret, 1, email_id);
    v_owner bigint;
    v_created_at timestamptz;
    v_is_own boolean;
BEGIN
    SELECT m.owner, m.created_at INTO v_owner, v_created_at FROM mailroom_messages m WHERE m.id = v_opened.id;
    v_is_own := mailroom_is_own(coalesce(v_owner, 0), 'SELECT');
    RETURN CASE WHEN mailroom_id_seal(v_secret, 1, v_opened.id, coalesce(v_created_at, 'epoch')) = v_opened.seal AND v_is_own
                THEN v_opened.id END;
END
$$;
