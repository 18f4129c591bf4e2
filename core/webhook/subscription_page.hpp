// The pages that the links of a mail lead to, as HTML without script: they name topics and nobody.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "suppression/preferences.hpp"

namespace mailroom::webhook {

/// What a page shows.
enum class SubscriptionView {
  question,     ///< whether the mails of the own topic are to stop: one button
  stopped,      ///< they have stopped
  preferences,  ///< all topics, each with a box
  saved,        ///< the same, after a change
};

/// The languages that a browser asks for (Accept-Language, RFC 9110), the most wanted first.
std::vector<std::string> wanted_languages(std::string_view accept_language);

/// The page. `choices`: at least one, the own topic first. `preferences_text`: the last part of the link to
/// the preferences. In the language of the mail, else in one of `languages`, as far as titles or the words of
/// the page have it; else in English.
std::string subscription_page(SubscriptionView view, const std::vector<suppression::TopicChoice>& choices,
                              std::string_view preferences_text, const std::vector<std::string>& languages);

/// The headers of every page: it runs nothing, and its address goes nowhere.
std::vector<std::pair<std::string, std::string>> subscription_headers();

}  // namespace mailroom::webhook
