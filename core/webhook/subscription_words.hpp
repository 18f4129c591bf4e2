// What the pages say, by language.
#pragma once

#include <string_view>

namespace mailroom::webhook {

/// `{}` stands for the title of a topic.
struct SubscriptionWords {
  std::string_view language;
  std::string_view unsubscribe;  ///< heading and button
  std::string_view question;
  std::string_view stopped;  ///< heading
  std::string_view no_more;
  std::string_view choose;       ///< the link to the preferences
  std::string_view preferences;  ///< heading
  std::string_view which;        ///< above the boxes
  std::string_view save;
  std::string_view saved;
};

/// Null for a language that the pages do not speak. `language`: without region, in lower case.
const SubscriptionWords* find_subscription_words(std::string_view language);
/// In English.
const SubscriptionWords& default_subscription_words();

}  // namespace mailroom::webhook
