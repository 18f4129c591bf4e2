#pragma once

#include <vector>

#include "consumer/batch_signer.hpp"
#include "consumer/line_sink.hpp"
#include "support/batch_rows.hpp"

namespace mailroom::test {

/// A session with one batch of `count` due tokens; half of the addresses need quotes.
class DueRows final : public QueueSession {
 public:
  explicit DueRows(int count) : count_(count) {}

  ClaimReply claim(const ClaimRequest& /*request*/) override { return {}; }
  void fetch(const Lease& /*lease*/, const std::function<void(const TokenRow&)>& each) override {
    for (int id = 1; id <= count_; ++id) {
      auto row = id % 2 == 0 ? row_of(id, Action::activation, "somebody@mail.example", "somebody")
                             : row_of(id, Action::password_recovery, "some,body@mail.example", "some\"body");
      row.secret.emplace().fill(static_cast<std::uint8_t>(id));
      each(row);
    }
  }
  Notified take_notifications() override { return Notified::no; }
  bool arrange(Waking /*waking*/) override { return true; }
  void check_health() override {}
  int socket() const override { return -1; }

 private:
  int count_;
};

}  // namespace mailroom::test
