// Tells the refusal of one recipient from a refusal that meets every mail.
#pragma once

#include <string>
#include <string_view>

#include "delivery/refusal_memory.hpp"

namespace mailroom::smtp {

/// The relay's own words in lower case: without the recipient, without what stands in angle brackets, and
/// without what it quotes from another server. No recipient may choose the words that are judged.
std::string own_words(std::string_view text, std::string_view recipient);

/// Reads it from the code, the enhanced code and the own words of the reply. `sender` and `recipient` are the
/// addresses of the envelope, which the reply may repeat.
delivery::RefusalSubject subject_of_refusal(int code, std::string_view text, std::string_view recipient,
                                            std::string_view sender = {});

/// What equal refusals of several mails have in common: code and words, without addresses and numbers.
std::string refusal_key(int code, std::string_view text, std::string_view recipient);

}  // namespace mailroom::smtp
