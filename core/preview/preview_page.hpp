// The page of mails, one file of HTML with its style and its script, and the policy that allows just these.
#pragma once

#include <string>
#include <string_view>

namespace mailroom::preview {

/// core/preview/page.html.
std::string_view preview_page();

/// Its Content-Security-Policy.
std::string preview_page_policy();

}  // namespace mailroom::preview
