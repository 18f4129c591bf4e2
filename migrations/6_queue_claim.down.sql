-- Drops the claim and its parts. Locks nothing; a running collector fails at its next claim.

DROP FUNCTION mailroom_share_sinks(text, jsonb, text[], interval);
DROP FUNCTION mailroom_minimum_client();
DROP FUNCTION mailroom_append_batch(text, bigint, bigint[], bigint, int8multirange, int8multirange, bigint,
                                    integer, integer);
DROP FUNCTION mailroom_claim_any(text, integer, boolean, boolean, boolean, boolean, mailroom_receipt, token_action[], bigint);
DROP FUNCTION mailroom_claim(integer, text, integer, boolean, boolean, boolean, boolean, text, mailroom_receipt, bigint);
DROP FUNCTION mailroom_filtered_range(bigint, bigint, integer, token_action[]);
DROP FUNCTION mailroom_claim_limit(text, text[], integer, boolean, boolean, bigint, bigint, token_action[], mailroom_receipt, bigint);
DROP FUNCTION mailroom_debit(text[], integer);
DROP FUNCTION mailroom_allowance(text[], integer);
DROP FUNCTION mailroom_update_gaps(mailroom_gap_check[], boolean);
DROP FUNCTION mailroom_publish_cursor(text, bigint);
DROP FUNCTION mailroom_acknowledge(mailroom_receipt);
DROP FUNCTION mailroom_record_outcomes(text, bigint, int8multirange, jsonb);
DROP FUNCTION mailroom_outcomes_so_far(mailroom_deliveries);
DROP FUNCTION mailroom_outcome_records(int8multirange, jsonb, timestamptz);
DROP TYPE mailroom_receipt;
