package cli

import (
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// emptyMeans is the annotation of a flag whose empty value has a meaning.
const emptyMeans = "stint_empty_means"

// required is the annotation of a flag without which the command does not run.
const required = "stint_required"

// refuseEmpty reports every flag that was given with an empty value. The value is probably
// a variable that is not set, and a command that ignored the flag would do more than it
// was asked for: stint cancel --queue nightly --key "$TENANT" would cancel the whole queue.
func refuseEmpty(cmd *cobra.Command, _ []string) error {
	var errs []error
	cmd.Flags().Visit(func(flag *pflag.Flag) {
		if flag.Annotations[emptyMeans] != nil || !isEmpty(flag.Value) {
			return
		}
		value, _ := pflag.UnquoteUsage(flag)
		instead := fmt.Sprintf(", or leave --%s out", flag.Name)
		if flag.Annotations[required] != nil {
			instead = ""
		}
		errs = append(errs, fmt.Errorf("--%s is empty: give %s%s", flag.Name, value, instead))
	})
	return errors.Join(errs...)
}

// isEmpty reports whether a value, or one of a list of values, is empty.
func isEmpty(value pflag.Value) bool {
	if list, ok := value.(pflag.SliceValue); ok {
		values := list.GetSlice()
		return len(values) == 0 || slices.Contains(values, "")
	}
	return value.String() == ""
}
