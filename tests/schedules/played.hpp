#pragma once

#include "compose/encoder.hpp"
#include "schedules/process.hpp"

namespace mailroom::test {

/// A session whose requests and replies take time, and are lost when the world says so.
class PlayedSession final : public QueueSession {
 public:
  explicit PlayedSession(Process& process);
  ~PlayedSession() override;
  PlayedSession(const PlayedSession&) = delete;
  PlayedSession& operator=(const PlayedSession&) = delete;

  ClaimReply claim(const ClaimRequest& request) override;
  void fetch(const Lease& lease, const std::function<void(const TokenRow&)>& each) override;
  bool arrange(Waking waking) override;
  Notified take_notifications() override;
  void check_health() override;
  int socket() const override { return session_->socket(); }

 private:
  template <typename Work>
  auto call(Step step, Work work);

  Process& process_;
  std::unique_ptr<QueueSession> session_;
};

/// Writes lines for the oracle: batch, attempt, life, the times of fetch and write, and the tokens.
class PlayedEncoder final : public Encoder {
 public:
  explicit PlayedEncoder(Process& process) : process_(process) {}

  void begin(const Lease& lease) override;
  bool add(const TokenRow& row, std::string_view token) override;
  std::string_view finish() override;

 private:
  Process& process_;
  Lease lease_;
  TimePoint fetched_{};
  std::string ids_;
  std::string line_;
};

}  // namespace mailroom::test
