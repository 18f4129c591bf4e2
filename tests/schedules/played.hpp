#pragma once

#include "compose/encoder.hpp"
#include "schedules/process.hpp"

namespace mailroom::test {

/// A session whose requests and replies take time, and are lost when the world says so.
class PlayedSession final : public claim::QueueSession {
 public:
  explicit PlayedSession(Process& process);
  ~PlayedSession() override;
  PlayedSession(const PlayedSession&) = delete;
  PlayedSession& operator=(const PlayedSession&) = delete;

  claim::ClaimReply claim(const claim::ClaimRequest& request) override;
  void fetch(const claim::Lease& lease, const std::function<void(const claim::TokenRow&)>& each) override;
  bool arrange(claim::Waking waking) override;
  claim::Notified take_notifications() override;
  void check_health() override;
  int socket() const override { return session_->socket(); }

 private:
  template <typename Work>
  auto call(Step step, Work work);

  Process& process_;
  std::unique_ptr<claim::QueueSession> session_;
};

/// Writes lines for the oracle: batch, attempt, life, the times of fetch and write, and the tokens.
class PlayedEncoder final : public compose::Encoder {
 public:
  explicit PlayedEncoder(Process& process) : process_(process) {}

  void begin(const claim::Lease& lease) override;
  bool add(const claim::TokenRow& row, std::string_view token) override;
  std::string_view finish() override;

 private:
  Process& process_;
  claim::Lease lease_;
  TimePoint fetched_{};
  std::string ids_;
  std::string line_;
};

}  // namespace mailroom::test
