// The page of mails, one file of HTML with its style and its script, and the policy that allows just these.
#pragma once

#include <string>
#include <string_view>

namespace mailroom::preview {

/// core/preview/page.html.
std::string_view preview_page();

/// Its Content-Security-Policy.
std::string preview_page_policy();

/// That of the frame with the HTML of a mail, which runs nothing and fetches images only if they are wanted.
std::string mail_frame_policy(bool loads_images, bool follows_links);

}  // namespace mailroom::preview
