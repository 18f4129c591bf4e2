// Under which URL a proxy serves the desk.
#pragma once

#include <string>

namespace mailroom::desk {

/// Where a proxy serves the desk.
struct DeskSite {
  std::string host{};  ///< with its port, as `Host` has it; empty: there is no proxy
  bool is_secure = false;
};

/// `https://desk.example`; an empty text is no site. Throws Error(configuration) for anything else.
DeskSite parse_site(const std::string& url);

}  // namespace mailroom::desk
