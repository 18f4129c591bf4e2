// The mails that templates make of example data, and that of a message with its link replaced.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "claim/message_rows.hpp"
#include "claim/queue_session.hpp"
#include "compose/mail_writer.hpp"
#include "db/connection.hpp"
#include "preview/preview_source.hpp"
#include "preview/template_catalogue.hpp"

namespace mailroom::preview {

/// A message of the database with all that its mail is made of, read once and kept.
class StoredMessage {
 public:
  /// Reads it with its files, of at most `largest` bytes. Throws Error(unusable) if there is no such message
  /// or its content has been removed.
  StoredMessage(db::Connection& connection, std::int64_t id, std::size_t largest);

  std::string title() const;
  const std::string& template_name() const { return template_name_; }  ///< empty: it has its own content
  std::string locale() const { return std::string(content_.locale); }
  std::string data() const { return std::string(content_.data); }
  std::string profile() const { return std::string(content_.profile); }

  /// Its mail to the first recipient, with `token` in its link.
  std::variant<compose::WrittenMail, mail::Refusal> write(const compose::MailWriter& writer,
                                                          const std::string& token,
                                                          const std::string& data) const;

 private:
  db::Rows rows_;                   ///< what the views are of
  claim::RawMailReader raw_mails_;  ///< likewise
  claim::MessageContent content_;
  queue::Action action_;
  std::string template_name_;
  std::vector<mail::Attachment> files_;
};

/// What shapes the mails beside their templates.
struct TemplatePreviewOptions {
  std::string directory{};  ///< of the templates; empty for the built-in ones alone
  mail::Mailbox from{};
  std::vector<mail::Mailbox> reply_to{};
  std::vector<mail::ExtraHeader> headers{};
  mail::LinkTemplate link;
  std::size_t max_size = 0;
  std::string token{};  ///< that stands in for a real one
  /// The draft of an example, without data.
  std::function<compose::MailDraft(const std::string& name, const std::string& locale)> draft;
  std::optional<StoredMessage> message{};
};

class TemplatePreview final : public PreviewSource {
 public:
  explicit TemplatePreview(TemplatePreviewOptions options);

  std::string title() const override;
  bool takes_data() const override { return true; }
  std::vector<PreviewItem> items() override;
  PreviewResult show(const PreviewRequest& request) override;
  int fd() const override { return catalogue_.fd(); }
  PreviewChange poll() override { return catalogue_.poll(); }
  bool has_work() const override { return catalogue_.has_work(); }

 private:
  using Written = std::variant<compose::WrittenMail, mail::Refusal>;

  bool is_message(const std::string& item) const;
  Written write(const PreviewRequest& request, PreviewResult& result);
  Written write_message(const PreviewRequest& request, PreviewResult& result);
  compose::MailWriter writer(templates::TemplateSet templates) const;

  TemplatePreviewOptions options_;
  TemplateCatalogue catalogue_;
};

}  // namespace mailroom::preview
