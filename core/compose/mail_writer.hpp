// Makes a mail of a token, link, templates, message and envelope, for a relay.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "claim/queue_session.hpp"
#include "crypto/token.hpp"
#include "delivery/carrier.hpp"
#include "delivery/composer.hpp"
#include "mail/bounce_address.hpp"
#include "mail/link_template.hpp"
#include "mail/message.hpp"
#include "mail/redirection.hpp"
#include "mail/subscription_link.hpp"
#include "templates/template_set.hpp"
#include "templates/template_values.hpp"

namespace mailroom::compose {

/// A mail with its envelope, ready for a relay.
struct WrittenMail {
  delivery::Envelope envelope;
  std::string subject;       ///< as its reader sees it
  std::string message;       ///< header and body with CRLF line ends
  std::string message_id{};  ///< without angle brackets; or empty
  std::string templates{};   ///< the files that it was made of, by comma; empty without a template
  bool is_raw = false;       ///< its program has made it
};

/// What a mail is made of.
struct MailDraft {
  mail::MailContent content;    ///< without what the template makes
  std::string home{};           ///< TokenRow::home
  std::string template_name{};  ///< empty: the content has all that its reader sees
  std::string locale{};         ///< of the reader; may be empty
  std::string data{};           ///< of the message: an object of JSON, or empty
  templates::DataFor purpose = templates::DataFor::sending;
  templates::TemplateValues values{};  ///< without the link, which the writer makes of the token
  std::string files{};                 ///< what the template is made of, once it is rendered
};

/// Writes the mail of a token, and of its message, if it has one. Two calls with the same queue and token
/// give the same bytes.
class MailWriter {
 public:
  /// A mail has at most `max_size` bytes, as the relay gets it. Without `link` no mail has one.
  MailWriter(mail::Mailbox from, mail::MessageBuilder builder,
             std::shared_ptr<const templates::TemplateSet> templates, std::optional<mail::LinkTemplate> link,
             std::size_t max_size, mail::Redirection redirection = {},
             std::optional<mail::BounceAddress> bounce_address = std::nullopt,
             std::optional<mail::SubscriptionLinks> subscriptions = std::nullopt);

  /// Why the configuration has no mail for this token, ever or yet; nullopt if it has one. Otherwise it must
  /// not be written.
  std::optional<delivery::Withheld> withheld(const claim::TokenRow& row) const;
  /// The address that gets the mail of this token in place of its recipient; nullopt if none does.
  std::optional<mail::Address> redirected(std::string_view recipient) const;
  /// Refuses a token whose mail cannot be written, or not be mailed to its address.
  std::variant<WrittenMail, mail::Refusal> write(std::string_view queue, const claim::TokenRow& row,
                                                 std::string_view token,
                                                 std::vector<mail::Attachment> attachments = {}) const;
  std::variant<WrittenMail, mail::Refusal> write(MailDraft draft, const mail::Address& to) const;
  /// Puts what the template makes into the content; nullopt if it does.
  std::optional<mail::Refusal> render(MailDraft& draft) const;

  std::size_t max_size() const { return max_size_; }

  /// The names of all templates.
  std::vector<std::string> template_names() const { return templates_->names(); }
  /// What is probably wrong in the templates.
  const std::vector<std::string>& warnings() const { return templates_->warnings(); }

 private:
  /// False if send.allow keeps mails from the recipient.
  bool is_allowed(std::string_view recipient) const;
  delivery::Envelope envelope_of(const MailDraft& draft, const mail::Address& to) const;
  /// The mail of `row.content`, as it is.
  std::variant<WrittenMail, mail::Refusal> write_raw(const claim::TokenRow& row,
                                                     const mail::Address& recipient,
                                                     const std::optional<mail::Address>& redirection) const;
  std::optional<mail::Refusal> problem_of_size(std::size_t size) const;
  /// True for a mail with a topic.
  bool has_subscription(const claim::TokenRow& row) const;
  /// Adds what a mail with a topic has: links for its template, and headers, unless it has its own.
  void add_subscription(MailDraft& draft) const;

  mail::Mailbox from_;
  mail::MessageBuilder builder_;
  std::shared_ptr<const templates::TemplateSet> templates_;
  std::optional<mail::LinkTemplate> link_;
  std::size_t max_size_;
  mail::Redirection redirection_;
  std::optional<mail::BounceAddress> bounce_address_;     ///< nullopt: bounces come back to the sender
  std::optional<mail::SubscriptionLinks> subscriptions_;  ///< nullopt: no mail can be unsubscribed from
};

}  // namespace mailroom::compose
