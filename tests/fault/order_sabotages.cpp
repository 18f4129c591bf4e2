// What is broken on purpose for orders of statements alone.

#include "fault/sabotage.hpp"

namespace mailroom::test {

const std::vector<Sabotage>& order_sabotages() {
  static const std::vector<Sabotage> all{
      {"a cancel overlooks what is leased",
       {{"mailroom_cancel_tokens", "v_result := 'sending';", "NULL;"}},
       "",
       0},
      {"a cancel does not wait for a claim",
       {{"mailroom_cancel_tokens",
         "WHEN pg_advisory_lock(mailroom_lock_class('queue'), hashtext(q.job_type))::text IS NOT NULL",
         "WHEN false"}},
       "",
       0},
      {"a cancel is not durable",
       {{"mailroom_cancel_message", "SELECT m.send_after,",
         "PERFORM set_config('synchronous_commit', 'off', true); SELECT m.send_after,"}},
       "",
       0},
      {"a key is submitted twice",
       {{"mailroom_submit", "p_expires_at[1], p_keys[1], p_references[1]",
         "p_expires_at[1], NULL, p_references[1]"}},
       "",
       0},
      {"a submitted mail is not durable",
       {{"mailroom_submit", "IF v_count = 0 OR",
         "PERFORM set_config('synchronous_commit', 'off', true); IF v_count = 0 OR"}},
       "",
       0}};
  return all;
}

}  // namespace mailroom::test
