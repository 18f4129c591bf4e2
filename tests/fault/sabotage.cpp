#include "fault/sabotage.hpp"

#include <stdexcept>

namespace mailroom::test {

const std::vector<Sabotage>& sabotages() {
  static const std::string nothing_wrong = "no fault, eight collectors";
  static const std::string another_order = "ids in another order than transactions";
  static const std::string bursts = "bursts, committed while starting to listen";
  static const std::string queues = "queues: no fault";
  static const std::string pauses = "queues: pauses and kills";
  static const std::string killed_in_rate = "rates: kill -9 at random";
  static const std::vector<Sabotage> all{
      {"a cursor alone, without gaps",
       {{"mailroom_append_batch", "IF NOT isempty(v_unseen) THEN", "IF false THEN"}},
       nothing_wrong,
       6},
      {"a gap is forgotten at the first check",
       {{"mailroom_check_gap", "WHERE x < h.horizon", "WHERE false AND x < h.horizon"}},
       nothing_wrong,
       20},
      {"the horizon is the snapshot's xmax",
       {{"mailroom_window", "WHILE due < p_limit",
         "PERFORM set_config('broken.xmax', pg_snapshot_xmax(pg_current_snapshot())::text, true); "
         "WHILE due < p_limit"},
        {"mailroom_append_batch", "pg_current_xact_id()", "current_setting('broken.xmax')::xid8"}},
       another_order,
       4},
      {"the transaction id before the lock",
       {{"mailroom_claim", "PERFORM pg_advisory_xact_lock(1835100524",
         "PERFORM pg_current_xact_id(); PERFORM pg_advisory_xact_lock(1835100524"}},
       another_order,
       4},
      {"… under load, by chance",
       {{"mailroom_claim", "PERFORM pg_advisory_xact_lock(1835100524",
         "PERFORM pg_current_xact_id(); PERFORM pg_advisory_xact_lock(1835100524"}},
       nothing_wrong,
       120},
      {"an id before the transaction id",
       {{"trg_before_token_insert", "PERFORM pg_current_xact_id();", ""}},
       another_order,
       4},
      {"batches of living collectors are taken over",
       {{"mailroom_find_abandoned", "pg_try_advisory_xact_lock_shared(1835100525, r.collector)", "true"}},
       nothing_wrong,
       6},
      {"acknowledgements are not durable",
       {{"mailroom_claim", "pending := 0;",
         "pending := 0; PERFORM set_config('synchronous_commit', 'off', true);"}},
       "stop -m immediate and start",
       24},
      {"the usual claim takes a stretch with a gap",
       {{"mailroom_claim", "IF (last - v_cursor = v_seen) IS TRUE", "IF (v_due > 0) IS TRUE"}},
       another_order,
       4},
      {"the usual claim forgets gaps", {{"mailroom_claim", "b.gap_ids = '{}' AND", ""}}, another_order, 4},
      {"the usual claim forgets batches in flight",
       {{"mailroom_claim", "WHEN b.open_from <> b.id THEN false", "WHEN false THEN false"}},
       "session ended behind others",
       2},
      {"a batch that its sender holds is taken for abandoned",
       {{"mailroom_find_abandoned", "CONTINUE WHEN r.id = p_held;", ""}},
       "send: no fault, four senders",
       6},
      {"listening, silent transactions are forgotten",
       {{"mailroom_open_inserts", "l.granted", "l.granted AND false"}},
       bursts,
       4},
      {"listening, inserts still do not notify",
       {{"mailroom_start_listening", "pg_advisory_unlock(1835100526, l.objid::integer)", "false"}},
       bursts,
       4},
      {"deferred mails are forgotten",
       {{"mailroom_record_outcomes", "v_now + o.wait * interval '1 second'", "NULL::timestamptz"}},
       "send: 451, 550 and 421",
       3},
      {"every outcome is recorded as accepted",
       {{"mailroom_record_outcomes", "        ELSE o.state", "        ELSE 'accepted'"},
        {"mailroom_record_outcomes", "WHEN s.state = 'deferred' THEN v_now", "WHEN false THEN v_now"}},
       "send: 451, 550 and 421",
       3},
      {"batches of living senders are taken over",
       {{"mailroom_find_abandoned", "pg_try_advisory_xact_lock_shared(1835100525, r.collector)", "true"}},
       "send: no fault, four senders",
       6},
      {"outcomes are not durable",
       {{"mailroom_claim", "pending := 0;",
         "pending := 0; PERFORM set_config('synchronous_commit', 'off', true);"}},
       "send: stop -m immediate and start",
       8},
      {"tokens that expire before a claim are forgotten",
       {{"mailroom_claim_any", "v_window.last, v_window.expired", "v_window.last, 0"}},
       "send: relay down until tokens expire",
       1},
      {"what a program refuses is recorded as accepted",
       {{"mailroom_record_outcomes", "        ELSE o.state", "        ELSE 'accepted'"},
        {"mailroom_record_outcomes", "WHEN s.state = 'deferred' THEN v_now", "WHEN false THEN v_now"}},
       "http: half, late, huge and wrong answers",
       6},
      {"batches of collectors that wait for answers are taken over",
       {{"mailroom_find_abandoned", "pg_try_advisory_xact_lock_shared(1835100525, r.collector)", "true"}},
       "exec: no fault",
       6},
      {"a queue takes the tokens of every action",
       {{"mailroom_takes", "p_actions IS NULL", "true"}},
       queues,
       4},
      {"the usual claim takes the tokens of every action",
       {{"mailroom_filtered_range", "THEN '1' ELSE '0' END", "THEN '1' ELSE '1' END"}},
       "queues: no fault, calm",
       4},
      {"the fetch forgets the mask of a batch",
       {{"mailroom_batch_tokens", "get_bit(b.ids_mask, (t.id - b.first)::integer) = 1", "true"}},
       "queues: no fault, calm",
       4},
      {"of a gap a queue leases what it does not take",
       {{"mailroom_check_gap", "FILTER (WHERE v.is_taken), '{}')", "FILTER (WHERE v.id IS NOT NULL), '{}')"}},
       queues,
       4},
      {"a gap is deleted before all of it is leased",
       {{"mailroom_check_gap", "count(v.id) >= v_rows OR count(*) FILTER (WHERE v.is_taken) >= p_budget",
         "false"}},
       queues,
       4},
      {"a pause is ignored", {{"mailroom_claim", "v_queue.paused_at IS NOT NULL", "false"}}, pauses, 4},
      {"a paused queue is taken over",
       {{"mailroom_claim_any", "IF p_limit = 0 THEN",
         "IF p_limit = 0 AND (mailroom_find_abandoned(p_queue, v_state.open_from, p_take_over, p_receipt.batch, "
         "p_receipt.attempt)).abandoned IS NULL THEN"}},
       pauses,
       15},
      {"a rewind moves another queue too",
       {{"mailroom_rewind", "PERFORM mailroom_append_state(",
         "PERFORM mailroom_append_state('activation', least(s.cursor, p_target), s.open_from, s.gap_ids) "
         "FROM mailroom_queue_state('activation') s; PERFORM mailroom_append_state("}},
       "queues: rewinds of one",
       4},
      {"what is taken over is not debited",
       {{"mailroom_claim", "IF size > 0 THEN", "IF size > 0 AND attempt = 1 THEN"}},
       killed_in_rate,
       60},
      {"a budget is debited twice",
       {{"mailroom_debit", "* p_tokens / b.tokens", "* p_tokens * 2 / b.tokens"}},
       "rates: no fault",
       10},
      {"two claims read one budget at once",
       {{"mailroom_allowance", "pg_advisory_xact_lock(1835100528", "int4larger(1835100528"}},
       "rates: two queues share one",
       20}};
  return all;
}

void break_protocol(Connection& connection, const Sabotage& sabotage) {
  for (const auto& [function, from, to] : sabotage.breakages) {
    std::string source =
        connection.run("SELECT pg_get_functiondef($1::regproc)", function)[0][0].as<std::string>();
    const auto at = source.find(from);
    if (at == std::string::npos) throw std::runtime_error(function + " does not contain: " + from);
    connection.run(source.replace(at, from.size(), to));
  }
}

}  // namespace mailroom::test
