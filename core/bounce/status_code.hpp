// Enhanced status codes (RFC 3463) and reply codes (RFC 5321) within the words of a server.
#pragma once

#include <string>
#include <string_view>

#include "bounce/bounce_reason.hpp"

namespace mailroom::bounce {

/// The first enhanced status in `text`, as `5.1.1`; empty if there is none. The four numbers of an IP address
/// are none.
std::string find_status(std::string_view text);

/// The first reply code of a refusal or of success in `text`: three digits that stand alone; 0 for none.
int find_reply_code(std::string_view text);

/// What an enhanced status says by itself; undetermined for most.
BounceReason reason_of_status(std::string_view status);

/// What a reply code says by itself; undetermined for most.
BounceReason reason_of_code(int code);

}  // namespace mailroom::bounce
