// The mails of a page, read back from the bytes that SMTP carries, so that what it shows is what a reader
// gets, and where it has them from: templates, or mails that were captured.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "preview/quiet_html.hpp"

namespace mailroom::preview {

/// A part of a mail that is neither its text nor its HTML.
struct ViewedFile {
  std::string name{};
  std::string type{};
  std::string content_id{};  ///< without angle brackets; or empty
  std::string bytes{};
};

/// A mail in its parts, in UTF-8.
struct MailView {
  std::string source{};  ///< header and body, as SMTP carries them
  std::string subject{};
  std::vector<std::pair<std::string, std::string>> headers{};  ///< From, To and the like, without Subject
  std::optional<std::string> text{};
  std::optional<std::string> html{};
  std::vector<ViewedFile> files{};
};

/// Throws Error(failed) for what is no mail.
MailView read_mail(std::string source);

/// The HTML of the mail as a document of its own, with its images within it.
QuietHtml framed_html(const MailView& mail, bool loads_images, bool follows_links);

/// A mail that can be looked at.
struct PreviewItem {
  std::string id{};
  std::string title{};
  std::string note{};                  ///< beside the title; or empty
  std::vector<std::string> locales{};  ///< to choose from; an empty one is that of no locale
  std::string problem{};               ///< why no mail can be made; empty if nobody knows of one
};

/// Which mail is wanted.
struct PreviewRequest {
  std::string item{};
  std::string locale{};
  std::optional<std::string> data{};  ///< JSON that was typed; nullopt: what the source has
};

/// A mail, or why there is none.
struct PreviewResult {
  std::shared_ptr<const MailView> mail{};  ///< null: there is a problem
  std::string problem{};                   ///< with file and line, where there is one
  std::string hint{};
  std::vector<std::string> warnings{};
  std::string data{};       ///< that the mail was made with
  std::string data_from{};  ///< `receipt.example.json`; empty if it was typed or there is none
};

/// What is other than before.
enum class PreviewChange { none, mails, list };

/// The functions are called by several threads, poll() by one.
class PreviewSource {
 public:
  virtual ~PreviewSource() = default;

  /// What the page is called, and whether its mails are made of data that can be typed.
  virtual std::string title() const = 0;
  virtual bool takes_data() const = 0;
  virtual std::vector<PreviewItem> items() = 0;
  virtual PreviewResult show(const PreviewRequest& request) = 0;

  /// Readable when poll() has something to do; poll() is called now and then all the same.
  virtual int fd() const = 0;
  /// Looks for what has changed since the last call. With the list, the mails may be other too.
  virtual PreviewChange poll() = 0;
  /// True if poll() should be called again soon.
  virtual bool has_work() const { return false; }
};

}  // namespace mailroom::preview
