-- A token remembers the trace of the request that asked for its mail.
--
-- Takes ACCESS EXCLUSIVE on tokens for a moment, and reads no row. A token without a trace takes no byte more.

ALTER TABLE tokens ADD COLUMN traceparent text;

COMMENT ON COLUMN tokens.traceparent IS
    'the span of the application that asked for its mail (W3C Trace Context, version 00); null for none';
