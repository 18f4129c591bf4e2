// A PgQ consumer as in its tutorial: next_batch, get_batch_events, finish_batch; one line per batch.

#include <charconv>
#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <unistd.h>

#include "base/output.hpp"
#include "bench/rival_rows.hpp"
#include "compose/encoder.hpp"
#include "process/stop_signal.hpp"
#include "support/actions.hpp"

namespace mailroom::bench {
namespace {

crypto::Secret read_secret(std::string_view digits) {
  crypto::Secret secret{};
  if (digits.size() != 2 * secret.size()) throw std::runtime_error("an event holds no secret");
  for (std::size_t i = 0; i < secret.size(); ++i)
    std::from_chars(digits.data() + 2 * i, digits.data() + 2 * i + 2, secret[i], 16);
  return secret;
}

template <typename Field>
std::string_view view(const Field& field) {
  return {field.c_str(), field.size()};
}

class PgqConsumer {
 public:
  explicit PgqConsumer(const std::string& conninfo)
      : connection_(conninfo, "pgq consumer"),
        hmac_(crypto::Key::from_hex(bench_key, "the benchmark")),
        encoder_(compose::make_csv_encoder()),
        output_(STDOUT_FILENO) {
    connection_.prepare("next", "SELECT pgq.next_batch('mail', 'bench')");
    connection_.prepare(
        "events", "SELECT ev_type, ev_data, ev_extra1, ev_extra2, ev_extra3 FROM pgq.get_batch_events($1)");
    connection_.prepare("finish", "SELECT pgq.finish_batch($1)");
  }

  /// Handles one batch. Returns the number of its events, or nullopt when there is no batch yet.
  std::optional<std::int64_t> handle_batch() {
    const auto next = connection_.run_prepared("next")[0][0];
    if (next.is_null()) return std::nullopt;
    const auto batch = next.as<std::int64_t>();
    const auto events = connection_.run_prepared("events", batch);
    encoder_->begin({});
    for (const auto& event : events) {
      const auto action = view(event[0]) == "1" ? test::activation_action() : test::recovery_action();
      const auto secret = read_secret(view(event[1]));
      const auto code = view(event[4]);
      const auto token = queue::sign_token(hmac_, *action, secret, code);
      encoder_->add({.id = 0,
                     .action = action,
                     .secret = secret,
                     .code = code,
                     .expires_at = 0,
                     .email = view(event[2]),
                     .login = view(event[3]),
                     .state = claim::TokenState::due},
                    {token.data(), token.size()});
    }
    if (!events.empty()) output_.write(encoder_->finish());
    connection_.run_prepared("finish", batch);
    return static_cast<std::int64_t>(events.size());
  }

 private:
  db::Connection connection_;
  crypto::Hmac hmac_;
  std::unique_ptr<compose::Encoder> encoder_;
  Output output_;
};

}  // namespace

int run_pgq_consumer() {
  const char* wanted = std::getenv("BENCH_JOBS");
  std::int64_t left = wanted == nullptr ? -1 : std::stoll(wanted);
  process::StopSignal signal;
  PgqConsumer consumer(std::getenv("MAILROOM_DATABASE_URL"));
  std::ofstream(std::getenv("BENCH_READY")).flush();
  while (left != 0 && !signal.requested()) {
    if (const auto handled = consumer.handle_batch()) {
      if (left > 0) left -= *handled;
    } else {
      signal.sleep_for(Milliseconds(5));
    }
  }
  return 0;
}

}  // namespace mailroom::bench
