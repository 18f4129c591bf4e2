// Who may post events of Amazon SES: an entry of the table of keys, with which this file is compiled.

#include "config/key_table.hpp"

namespace mailroom::webhook {

std::vector<config::KeyEntry> ses_keys() {
  return {config::KeyEntry{"bounce.sns_topics", "MAILROOM_BOUNCE_SNS_TOPICS", "",
                           "ARNs of the topics of Amazon SNS that may post events of Amazon SES",
                           config::as_written(&config::BounceSettings::sns_topics)}
              .list()};
}

}  // namespace mailroom::webhook
