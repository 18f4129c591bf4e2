// A mail for each token, for a relay.
#pragma once

#include <memory>
#include <optional>

#include "compose/mail_writer.hpp"
#include "delivery/composer.hpp"

namespace mailroom {

/// Writes the mail of each token at once.
class MailComposer final : public Composer {
 public:
  explicit MailComposer(std::shared_ptr<const MailWriter> writer) : writer_(std::move(writer)) {}

  int begin(const Lease& lease, int /*limit*/) override {
    queue_ = lease.queue;
    return 1;
  }
  Added add(const TokenRow& row, const TokenText& token, DeliveryHistory history) override;
  std::optional<Composed> finish() override { return std::nullopt; }

 private:
  std::shared_ptr<const MailWriter> writer_;
  std::string queue_;
};

}  // namespace mailroom
