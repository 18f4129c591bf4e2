#pragma once

#include <optional>
#include <string>

#include "support/test_database.hpp"

namespace mailroom::test {

/// An outcome to record in mailroom_deliveries, as an acknowledgement does.
struct PlayedOutcome {
  std::int64_t token = 0;
  std::string state{};
  std::optional<int> code{};
  std::optional<std::string> reply{};  ///< nullopt: given back without an attempt
  std::string queue = "mailroom";
};

/// Records it by the function of the schema, as of a batch newer than all others. A deferred token waits for
/// ten minutes.
inline void record(db::Connection& connection, const PlayedOutcome& outcome) {
  connection.run(
      "SELECT mailroom_record_outcomes($1, coalesce((SELECT max(batch) FROM mailroom_deliveries), 0) + 1, "
      "int8multirange(int8range($2::bigint, $2::bigint, '[]')), jsonb_build_array(jsonb_strip_nulls(jsonb_build_object("
      "'first', $2::bigint, 'last', $2::bigint, 'state', $3::text, 'attempts', ($5::text IS NOT NULL)::int, 'wait', 600, 'sink', "
      "CASE WHEN $4::int IS NOT NULL THEN 'relay.example:25' END, 'code', $4::int, 'reply', $5::text))))",
      outcome.queue, outcome.token, outcome.state, outcome.code, outcome.reply);
}

}  // namespace mailroom::test
