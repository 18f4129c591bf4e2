// The settings of Amazon SES: entries of the table of keys, with which this file is compiled.

#include "config/key_table.hpp"

namespace mailroom {

std::vector<KeyEntry> ses_keys() {
  return {
      KeyEntry{
          "send.ses_credentials_file", "MAILROOM_SEND_SES_CREDENTIALS_FILE", "",
          "file with the AWS credentials for ses://; without it those of the role of this container or instance",
          option_of_relay(parse_path)}
          .secret_file("credentials")
          .read_by("ses")
          .in_profiles(),
      KeyEntry{"send.ses_configuration_set", "MAILROOM_SEND_SES_CONFIGURATION_SET", "",
               "configuration set of Amazon SES that mails are sent with", option_of_relay()}
          .read_by("ses")
          .in_profiles(),
      KeyEntry{"send.ses_endpoint", "MAILROOM_SEND_SES_ENDPOINT", "",
               "URL of the endpoint of Amazon SES, if not that of the region, such as one of a VPC",
               option_of_relay()}
          .hides(Secrecy::url)
          .read_by("ses")
          .in_profiles(),
  };
}

}  // namespace mailroom
