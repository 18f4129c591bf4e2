// What a form of a page sends, and who sends it.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "process/http_listener.hpp"

namespace mailroom::process {

/// The fields of a form (application/x-www-form-urlencoded), in their order. Ignores those after the first
/// thousand.
std::vector<std::pair<std::string, std::string>> form_fields(std::string_view body);

/// The client of a request: that for which a proxy on this host passes it on, if one does.
std::string client_of(const HttpCall& call);

}  // namespace mailroom::process
