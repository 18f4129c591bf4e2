#include "fault/step_collector.hpp"

#include <csignal>
#include <cstdlib>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "carriers/line_sink.hpp"
#include "claim/pg_queue_session.hpp"
#include "config/settings.hpp"
#include "consumer/collector.hpp"
#include "schema/bookkeeping.hpp"
#include "support/test_collector.hpp"

namespace mailroom::test {
namespace {

/// Counts down to the kill or stop of this process.
class Doom {
 public:
  Doom(std::string step, int nth) : step_(std::move(step)), left_(nth) {}

  void reach(const std::string& step) {
    const bool stops = step_ == "stop " + step;
    if ((!stops && step != step_) || --left_ != 0) return;
    if (step == "within a line")
      cut_next_line();
    else
      raise(stops ? SIGSTOP : SIGKILL);
  }

 private:
  /// Makes the kernel accept only a part of the next write, and kill the process at the following one.
  static void cut_next_line() {
    struct stat file {};
    if (fstat(STDOUT_FILENO, &file) != 0) abort();
    const auto size = static_cast<rlim_t>(file.st_size) + 40;
    const rlimit bound{size, size};
    if (setrlimit(RLIMIT_FSIZE, &bound) != 0) abort();
  }

  std::string step_;
  int left_;
};

class DoomedSession final : public claim::QueueSession {
 public:
  DoomedSession(std::unique_ptr<claim::QueueSession> session, Doom& doom)
      : session_(std::move(session)), doom_(doom) {}

  claim::ClaimReply claim(const claim::ClaimRequest& request) override {
    doom_.reach(request.receipt ? "after the write" : "before a claim");
    auto reply = session_->claim(request);
    if (request.receipt) doom_.reach("after an acknowledgement");
    if (reply.lease) doom_.reach("after a claim");
    return reply;
  }
  void fetch(const claim::Lease& lease, const std::function<void(const claim::TokenRow&)>& each) override {
    session_->fetch(lease, [&](const claim::TokenRow& row) {
      doom_.reach("while fetching");
      each(row);
    });
    doom_.reach("after the fetch");
    doom_.reach("within a line");
  }
  bool arrange(claim::Waking waking) override { return session_->arrange(waking); }
  claim::Notified take_notifications() override { return session_->take_notifications(); }
  void check_health() override { session_->check_health(); }
  int socket() const override { return session_->socket(); }

 private:
  std::unique_ptr<claim::QueueSession> session_;
  Doom& doom_;
};

consumer::CollectorSetup doomed_setup(Doom& doom, int limit, Output& output) {
  const std::string url = std::getenv("MAILROOM_DATABASE_URL");
  return {
      .connect =
          [url, &doom] {
            return std::make_unique<DoomedSession>(
                std::make_unique<claim::PgQueueSession>(claim::PgQueueSession::Setup{
                    url, {"mailroom"}, "token_insert", schema::require_current_schema}),
                doom);
          },
      .session_identity = url,
      .key = crypto::Key::from_hex(test_key, "the test"),
      .make_sink =
          [&output] { return std::make_unique<carriers::LineSink>(compose::make_jsonl_encoder(), output); },
      .queues = {"mailroom"},
      .turns = {.batcher = {.batch_timeout = Milliseconds(100),
                            .poll_interval = Milliseconds(1000),
                            .line_limit = limit}},
      .notify_always = config::process_environment().at("MAILROOM_NOTIFY") == "always",
      .healthcheck_interval = Milliseconds(60'000)};
}

}  // namespace

const std::vector<Step>& steps() {
  static const std::vector<Step> all{
      {"before a claim", SIGKILL, false},          {"after a claim", SIGKILL, false},
      {"while fetching", SIGKILL, false},          {"after the fetch", SIGKILL, false},
      {"within a line", SIGXFSZ, false},           {"after the write", SIGKILL, true},
      {"after an acknowledgement", SIGKILL, false}};
  return all;
}

int run_step_collector(const std::string& step, int nth, int limit) {
  Doom doom(step, nth);
  const rlimit no_core{0, 0};
  if (setrlimit(RLIMIT_CORE, &no_core) != 0) return 1;
  process::StopSignal signal;
  Output output(STDOUT_FILENO);
  Log log({.level = LogLevel::info});
  process::SystemEnvironment environment(signal, output.fd());
  const auto reload = [&] { return doomed_setup(doom, limit, output); };
  consumer::Collector(reload(), {}, reload, environment, log).run();
  return 0;
}

}  // namespace mailroom::test
