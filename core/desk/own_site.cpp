// Without TLS passwords would cross the network as they are, so that a plain URL is for this host alone.

#include "desk/own_site.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "base/text.hpp"
#include "process/own_host.hpp"

namespace mailroom::desk {
namespace {

constexpr std::string_view host_characters = "abcdefghijklmnopqrstuvwxyz0123456789.-:[]";

}  // namespace

DeskSite parse_site(const std::string& url) {
  if (url.empty()) return {};
  const auto lower = lower_case(url);
  DeskSite site{.host = {}, .is_secure = lower.starts_with("https://")};
  if (site.is_secure || lower.starts_with("http://")) site.host = lower.substr(lower.find("://") + 3);
  if (site.host.ends_with('/')) site.host.pop_back();
  const bool is_host =
      !site.host.empty() && site.host.find_first_not_of(host_characters) == std::string::npos;
  if (is_host && (site.is_secure || process::names_this_host(site.host))) return site;
  throw Error(ExitCode::configuration,
              fmt::format("desk.url is '{}', and must be https:// and a host", shown_text(url)),
              "for example https://desk.example; the desk has all paths of it");
}

}  // namespace mailroom::desk
