-- The one form of an address, by which addresses are compared: for limits, suppression, forgetting, and recipients that are
-- named twice. No index is built on these functions. Where the form is stored (mailroom_suppressions), functions.end.sql brings the
-- rows to the form of today.

-- The same as mailroom_canonical(), for what that does not know at sight.
CREATE OR REPLACE FUNCTION mailroom_canonical_of_any(p_address text) RETURNS text LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
    v_domain text := substring(p_address FROM '@([^@]*)$');
    v_local text := left(p_address, -length(v_domain) - 1);
BEGIN
    IF v_domain IS NULL THEN
        RETURN lower(p_address COLLATE "C");
    END IF;
    IF v_local ~ '^".*"$' AND length(v_local) > 2 THEN
        v_local := regexp_replace(substr(v_local, 2, length(v_local) - 2), '\\(.)', '\1', 'g');
    END IF;
    IF v_local !~ '^[^][\x01-\x20\x7f"(),.:;<>@\\]+(\.[^][\x01-\x20\x7f"(),.:;<>@\\]+)*$' THEN
        v_local := '"' || regexp_replace(v_local, '(["\\])', '\\\1', 'g') || '"';
    END IF;
    IF v_domain ~ '[^\x01-\x7f]' THEN
        v_domain := mailroom_ascii_domain(v_domain);
    END IF;
    RETURN lower((v_local || '@' || v_domain) COLLATE "C");
END
$$;

-- Returns the one form of an address that can be written in several: without quotes and backslashes that it does not need, in
-- lower case (of ASCII, whatever the locale of the database is), its domain in ASCII. core/mail/address.cpp makes the same. Most
-- addresses have it already, which the first expression tells. Inlined.
CREATE OR REPLACE FUNCTION mailroom_canonical(p_address text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN p_address COLLATE "C" ~ '^[a-z0-9_+-]+(\.[a-z0-9_+-]+)*@[a-z0-9.-]+$' THEN p_address ELSE mailroom_canonical_of_any(p_address) END;

-- Returns a domain with its labels in ASCII (RFC 3492), mapped to lower case before as UTS 46 does it for the letters of living
-- scripts that have cases. Text that is no UTF-8 in a database without an encoding stays as it is.
CREATE OR REPLACE FUNCTION mailroom_ascii_domain(p_domain text) RETURNS text LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
    v_points integer[];
    v_label integer[] := '{}';
    v_labels text[] := '{}';
    v_point integer;
BEGIN
    IF getdatabaseencoding() = 'UTF8' THEN
        p_domain := normalize(p_domain, NFKC);
    END IF;
    v_points := mailroom_code_points(p_domain);
    IF v_points IS NULL THEN
        RETURN p_domain;
    END IF;
    FOREACH v_point IN ARRAY v_points || 46 LOOP
        v_point := mailroom_lower_point(v_point);
        IF v_point IN (46, 12290) THEN
            v_labels := v_labels || mailroom_ascii_label(v_label);
            v_label := '{}';
        ELSE
            v_label := v_label || v_point;
        END IF;
    END LOOP;
    RETURN array_to_string(v_labels, '.');
END
$$;

-- Returns the code points of a text, null if it is no UTF-8.
CREATE OR REPLACE FUNCTION mailroom_code_points(p_text text) RETURNS integer[] LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
    v_bytes bytea := convert_to(p_text, 'UTF8');
    v_points integer[] := '{}';
    v_at integer := 0;
    v_byte integer;
    v_more integer;
    v_point integer;
BEGIN
    WHILE v_at < octet_length(v_bytes) LOOP
        v_byte := get_byte(v_bytes, v_at);
        v_more := CASE WHEN v_byte < 128 THEN 0 WHEN v_byte BETWEEN 194 AND 223 THEN 1 WHEN v_byte BETWEEN 224 AND 239 THEN 2
                       WHEN v_byte BETWEEN 240 AND 244 THEN 3 END;
        IF v_more IS NULL OR v_at + v_more >= octet_length(v_bytes) THEN
            RETURN NULL;
        END IF;
        v_point := CASE v_more WHEN 0 THEN v_byte ELSE v_byte & (63 >> v_more) END;
        FOR i IN 1..v_more LOOP
            v_point := v_point * 64 + (get_byte(v_bytes, v_at + i) & 63);
        END LOOP;
        v_points := v_points || v_point;
        v_at := v_at + 1 + v_more;
    END LOOP;
    RETURN v_points;
END
$$;

-- Returns the small letter of a code point: the simple mapping of Unicode, for Latin, Greek, Cyrillic and Armenian. Those of full
-- width are ASCII, also where no normalization is to be had.
CREATE OR REPLACE FUNCTION mailroom_lower_point(c integer) RETURNS integer LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE
    WHEN c BETWEEN 65 AND 90 THEN c + 32
    WHEN c < 192 THEN c
    WHEN c BETWEEN 192 AND 222 AND c <> 215 THEN c + 32
    WHEN c BETWEEN 256 AND 311 OR c BETWEEN 330 AND 375 OR c BETWEEN 478 AND 495 OR c BETWEEN 504 AND 543 OR c BETWEEN 546 AND 563
         OR c BETWEEN 1120 AND 1153 OR c BETWEEN 1162 AND 1215 OR c BETWEEN 1232 AND 1327 OR c BETWEEN 7680 AND 7829
         OR c BETWEEN 7840 AND 7935 THEN c + (1 - c % 2)
    WHEN c BETWEEN 313 AND 328 OR c BETWEEN 377 AND 382 OR c BETWEEN 461 AND 476 OR c BETWEEN 1217 AND 1230 THEN c + c % 2
    WHEN c = 376 THEN 255
    WHEN c = 902 THEN 940
    WHEN c BETWEEN 904 AND 906 THEN c + 37
    WHEN c = 908 THEN 972
    WHEN c IN (910, 911) THEN c + 63
    WHEN c BETWEEN 913 AND 939 AND c <> 930 THEN c + 32
    WHEN c BETWEEN 1024 AND 1039 THEN c + 80
    WHEN c BETWEEN 1040 AND 1071 THEN c + 32
    WHEN c = 1216 THEN 1231
    WHEN c BETWEEN 1329 AND 1366 THEN c + 48
    WHEN c BETWEEN 65313 AND 65338 THEN c - 65216
    WHEN c BETWEEN 65281 AND 65374 THEN c - 65248
    ELSE c END;

-- Returns a label of a domain as it is mailed: with xn-- if it has more than ASCII (RFC 3492, section 6.3).
CREATE OR REPLACE FUNCTION mailroom_ascii_label(p_points integer[]) RETURNS text LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
    v_out text := coalesce((SELECT string_agg(chr(p), '' ORDER BY o) FROM unnest(p_points) WITH ORDINALITY u (p, o) WHERE p < 128), '');
    v_basic integer := length(v_out);
    v_done integer := v_basic;
    v_n integer := 128;
    v_delta bigint := 0;
    v_bias integer := 72;
    v_next integer;
    v_q bigint;
    v_t integer;
    v_k integer;
    v_point integer;
BEGIN
    IF v_basic = cardinality(p_points) THEN
        RETURN v_out;
    END IF;
    v_out := 'xn--' || v_out || CASE WHEN v_basic > 0 THEN '-' ELSE '' END;
    WHILE v_done < cardinality(p_points) LOOP
        SELECT min(p) INTO v_next FROM unnest(p_points) p WHERE p >= v_n;
        v_delta := v_delta + (v_next - v_n)::bigint * (v_done + 1);
        v_n := v_next;
        FOREACH v_point IN ARRAY p_points LOOP
            v_delta := v_delta + (v_point < v_n)::integer;
            CONTINUE WHEN v_point <> v_n;
            v_q := v_delta; v_k := 36;
            LOOP
                v_t := least(greatest(v_k - v_bias, 1), 26);
                EXIT WHEN v_q < v_t;
                v_out := v_out || substr('abcdefghijklmnopqrstuvwxyz0123456789', (v_t + (v_q - v_t) % (36 - v_t))::integer + 1, 1);
                v_q := (v_q - v_t) / (36 - v_t); v_k := v_k + 36;
            END LOOP;
            v_out := v_out || substr('abcdefghijklmnopqrstuvwxyz0123456789', v_q::integer + 1, 1);
            -- The bias adapts (section 6.1).
            v_delta := CASE WHEN v_done = v_basic THEN v_delta / 700 ELSE v_delta / 2 END;
            v_delta := v_delta + v_delta / (v_done + 1);
            v_k := 0;
            WHILE v_delta > 455 LOOP
                v_delta := v_delta / 35; v_k := v_k + 36;
            END LOOP;
            v_bias := v_k + (36 * v_delta / (v_delta + 38))::integer;
            v_delta := 0; v_done := v_done + 1;
        END LOOP;
        v_delta := v_delta + 1; v_n := v_n + 1;
    END LOOP;
    RETURN v_out;
END
$$;
