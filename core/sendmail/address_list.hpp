// Addresses as headers and people write them. The only user of GMime's parser of addresses outside of tests
// and carriers.
#pragma once

#include <string>
#include <vector>

namespace mailroom::sendmail {

/// The addresses in a list with commas, without names, comments and groups: `ada@x.example`, `root` of `Ada
/// <ada@x.example>, root`.
std::vector<std::string> addresses_in(const std::string& list);

/// True without an @, and with a domain that has no dot: `root`, `root@web1`.
bool is_local(const std::string& address);

}  // namespace mailroom::sendmail
