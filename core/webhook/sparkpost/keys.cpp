// Who may post events of SparkPost: an entry of the table of keys, with which this file is compiled.

#include "config/key_table.hpp"

namespace mailroom::webhook {

std::vector<config::KeyEntry> sparkpost_keys() {
  return {config::KeyEntry{"bounce.sparkpost_secret_files", "MAILROOM_BOUNCE_SPARKPOST_SECRET_FILES", "",
                           "files with the secret that the URL of a webhook of SparkPost has, or its login",
                           config::secrets_of("sparkpost")}
              .list()};
}

}  // namespace mailroom::webhook
