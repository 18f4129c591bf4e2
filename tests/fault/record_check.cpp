#include "fault/record_check.hpp"

#include <fmt/format.h>
#include <fstream>

#include "queue/queue_definition.hpp"
#include "reconcile/reconciliation.hpp"
#include "support/temporary_directory.hpp"
#include "support/test_collector.hpp"

namespace mailroom::test {
namespace {

void account_for_queue(db::Connection& connection, const std::string& queue,
                       const reconcile::ConsumerOutput* output, Outcome& outcome) {
  const auto result = reconcile::reconcile(
      connection, {.queues = {queue}, .since = {}, .until = "9999-01-01", .output = output});
  for (const auto lost : {mailroom::fate::Outcome::missed, mailroom::fate::Outcome::unexplained})
    outcome.unexplained += static_cast<std::size_t>(result.tokens_with(lost));
  for (const auto& faulty : result.queues.front().faulty) {
    outcome.problems.push_back(fmt::format("not so: every token of {} is explained ({}: {})", queue,
                                           faulty.reason, selection::id_ranges_text(faulty.ids)));
  }
}

}  // namespace

void account_for_tokens(db::Connection& connection, Outcome& outcome) {
  for (const auto& queue : queue::queue_names(connection))
    account_for_queue(connection, queue, nullptr, outcome);
}

void account_for_tokens(db::Connection& connection, const std::vector<std::string>& outputs,
                        Outcome& outcome) {
  const TemporaryDirectory directory;
  std::vector<std::string> files;
  for (const auto& output : outputs) {
    files.push_back(directory.path() / std::to_string(files.size()));
    std::ofstream(files.back()) << output;
  }
  const crypto::KeyRing keys{crypto::Key::from_hex(test_key, "the test"), {}};
  for (const auto& queue : queue::queue_names(connection)) {
    const auto output = reconcile::read_consumer_output(connection, keys, queue, files);
    account_for_queue(connection, queue, &output, outcome);
  }
}

}  // namespace mailroom::test
