// RFC 5322, section 3.4, by GMime; with its groups, as `undisclosed-recipients:;`.

#include "sendmail/address_list.hpp"

#include <gmime/gmime.h>
#include <memory>
#include <mutex>

namespace mailroom::sendmail {
namespace {

void add_addresses(InternetAddressList* list, std::vector<std::string>& found) {
  for (int i = 0; list != nullptr && i < internet_address_list_length(list); ++i) {
    auto* each = internet_address_list_get_address(list, i);
    if (INTERNET_ADDRESS_IS_GROUP(each)) {
      add_addresses(internet_address_group_get_members(INTERNET_ADDRESS_GROUP(each)), found);
    } else if (const char* address = internet_address_mailbox_get_addr(INTERNET_ADDRESS_MAILBOX(each));
               address != nullptr) {
      found.emplace_back(address);
    }
  }
}

}  // namespace

std::vector<std::string> addresses_in(const std::string& list) {
  static std::once_flag once;
  std::call_once(once, g_mime_init);
  const std::unique_ptr<InternetAddressList, void (*)(gpointer)> parsed(
      internet_address_list_parse(nullptr, list.c_str()), g_object_unref);
  std::vector<std::string> found;
  if (parsed) add_addresses(parsed.get(), found);
  return found;
}

bool is_local(const std::string& address) {
  const auto at = address.rfind('@');
  return at == std::string::npos || address.find('.', at) == std::string::npos;
}

}  // namespace mailroom::sendmail
