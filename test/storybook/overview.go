package storybook

import (
	"sqlwriter/internal/ops"
)

func overviewStories() []Story {
	return []Story{
		{Name: "overview-flowing", Says: "All is well.", Answers: map[string]any{"status.get": ops.Status{SysName: "web", At: Now(), Flow: ops.FlowView{Says: "running"}}}},
	}
}
