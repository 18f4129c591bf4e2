// Which words of servers say which reason.
#pragma once

#include <string>
#include <string_view>

#include "bounce/bounce_reason.hpp"

namespace mailroom::bounce {

/// `text` as the rules compare it: in lower case, with one space between words, without addresses, codes of
/// SMTP and phrases that say nothing. Addresses are left out since their names may be words of the rules.
std::string comparable_words(std::string_view text);

/// What words of one meaning say; undetermined if there are none. `words` are such of comparable_words();
/// they may follow a status, as in `5.4.1 recipient address rejected`.
BounceReason reason_of_words(std::string_view words);

/// True if there are words that say `reason`, whatever else there is.
bool words_say(BounceReason reason, std::string_view words);

/// The same as reason_of_words() for words that many servers use for several reasons: a status says more than
/// they do.
BounceReason reason_of_vague_words(std::string_view words);

}  // namespace mailroom::bounce
