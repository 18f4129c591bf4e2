// Takes out of a mail's HTML what a page must not do by itself: scripts, forms, links and what is loaded from
// elsewhere. The frame's sandbox and policy forbid all of it too; without it they have nothing to complain
// of.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace mailroom::preview {

struct QuietOptions {
  bool loads_images = false;   ///< from other servers
  bool follows_links = false;  ///< in a window of their own
  /// A URL for the file that HTML shows as `cid:ID`; nullopt if there is none of this id.
  std::function<std::optional<std::string>(std::string_view id)> file_of{};
};

struct QuietHtml {
  std::string html;
  int remote = 0;  ///< images and fonts that other servers have, loaded or not
};

/// Changes nothing but what is taken out: a mail looks as it does without. What it does not recognise, it
/// leaves to the sandbox.
QuietHtml quiet_html(std::string_view html, const QuietOptions& options);

}  // namespace mailroom::preview
