// Makes a mail of a token, link, templates, message and envelope, for a relay.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <variant>

#include "claim/queue_session.hpp"
#include "crypto/token.hpp"
#include "delivery/carrier.hpp"
#include "delivery/composer.hpp"
#include "mail/link_template.hpp"
#include "mail/message.hpp"
#include "mail/template_set.hpp"

namespace mailroom {

/// A mail with its envelope, ready for a relay.
struct WrittenMail {
  Envelope envelope;
  std::string subject;  ///< as its reader sees it
  std::string message;  ///< header and body with CRLF line ends
};

/// What a mail says, and the queue, the key and the token that its Message-ID names.
struct MailValues {
  std::string_view queue;
  std::string_view key{};
  std::int64_t id = 0;
  TemplateValues values;  ///< without the link, which the writer adds
};

/// Writes the mail of a token. Two calls with the same queue and token give the same bytes.
class MailWriter {
 public:
  MailWriter(Mailbox from, MessageBuilder builder, TemplateSet templates, LinkTemplate link);

  /// Refuses a token whose account has an address that cannot be mailed.
  std::variant<WrittenMail, Refusal> write(std::string_view queue, const TokenRow& row,
                                           std::string_view token) const;
  std::variant<WrittenMail, Refusal> write(MailValues mail, const Address& to) const;

  /// What is probably wrong in the templates.
  const std::vector<std::string>& warnings() const { return templates_.warnings(); }

 private:
  Mailbox from_;
  MessageBuilder builder_;
  TemplateSet templates_;
  LinkTemplate link_;
};

/// Writes the mail of each token at once.
class MailComposer final : public Composer {
 public:
  explicit MailComposer(std::shared_ptr<const MailWriter> writer) : writer_(std::move(writer)) {}

  int begin(const Lease& lease, int /*limit*/) override {
    queue_ = lease.queue;
    return 1;
  }
  Added add(const TokenRow& row, std::string_view token, DeliveryHistory history) override;
  std::optional<Composed> finish() override { return std::nullopt; }

 private:
  std::shared_ptr<const MailWriter> writer_;
  std::string queue_;
};

}  // namespace mailroom
