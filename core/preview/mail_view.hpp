// Reads a mail back from the bytes that SMTP carries, so that what a page shows is what a reader gets.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "preview/quiet_html.hpp"

namespace mailroom {

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

}  // namespace mailroom
