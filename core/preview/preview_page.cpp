// Computes the hashes from the page itself, so that they cannot differ from it.

#include "preview/preview_page.hpp"

#include <fmt/format.h>

#include "crypto/base64.hpp"
#include "crypto/digest.hpp"

namespace mailroom::preview {
namespace {

/// `sha256-…` of what is between `<NAME>` and `</NAME>`.
std::string hash_of(std::string_view name) {
  const auto page = preview_page();
  const auto open = fmt::format("<{}>", name);
  const auto begin = page.find(open) + open.size();
  const auto end = page.find(fmt::format("</{}>", name), begin);
  return "sha256-" + crypto::base64(crypto::sha256({page.substr(begin, end - begin)}));
}

}  // namespace

std::string preview_page_policy() {
  static const auto policy = fmt::format(
      "default-src 'none'; script-src '{}'; style-src '{}'; connect-src 'self'; frame-src 'self'; "
      "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
      "require-trusted-types-for 'script'; trusted-types 'none'",
      hash_of("script"), hash_of("style"));
  return policy;
}

std::string mail_frame_policy(bool loads_images, bool follows_links) {
  return fmt::format(
      "sandbox{}; default-src 'none'; style-src 'unsafe-inline'; img-src data:{}; font-src data:{}; "
      "base-uri 'none'; form-action 'none'; frame-ancestors 'self'",
      follows_links ? " allow-popups allow-popups-to-escape-sandbox" : "",
      loads_images ? " http: https:" : "", loads_images ? " http: https:" : "");
}

}  // namespace mailroom::preview
