// The mails that templates make of example data, and that of a message with its link replaced.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "compose/mail_writer.hpp"
#include "preview/preview_source.hpp"
#include "preview/stored_message.hpp"
#include "preview/template_catalogue.hpp"

namespace mailroom {

/// What shapes the mails beside their templates.
struct TemplatePreviewOptions {
  std::string directory{};  ///< of the templates; empty for the built-in ones alone
  Mailbox from{};
  std::optional<Mailbox> reply_to{};
  std::vector<ExtraHeader> headers{};
  LinkTemplate link;
  std::size_t max_size = 0;
  std::string token{};  ///< that stands in for a real one
  /// The draft of an example, without data.
  std::function<MailDraft(const std::string& name, const std::string& locale)> draft;
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
  using Written = std::variant<WrittenMail, Refusal>;

  bool is_message(const std::string& item) const;
  Written write(const PreviewRequest& request, PreviewResult& result);
  Written write_message(const PreviewRequest& request, PreviewResult& result);
  MailWriter writer(TemplateSet templates) const;

  TemplatePreviewOptions options_;
  TemplateCatalogue catalogue_;
};

}  // namespace mailroom
