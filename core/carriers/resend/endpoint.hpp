// Where Resend listens, and the key that it knows us by.
#pragma once

#include <string>

#include "carriers/http/exchange.hpp"
#include "config/settings.hpp"

namespace mailroom::resend {

/// The endpoint of a path with one target, `resend://`. Its URL has no slash at its end. Throws
/// Error(configuration) for another URL.
http::HttpEndpoint parse_resend_endpoint(const config::RelayPath& path);

/// The key in send.resend_key_file. Throws Error(configuration) without one, for a file that others can
/// change or everyone can read, and for what is no key of Resend's.
std::string read_resend_key(const config::RelayPath& path);

}  // namespace mailroom::resend
