package storybook

// findingStories are those of: Findings.
func findingStories() []Story { return nil }
